// Owns the texts that JSON fuzzing begins with: every kind of value, every spelling that is a trap, and the
// frozen documents of this project.
import { frozenDocuments } from './seed-documents.js'

const TEXTS = [
  '{}',
  '[]',
  'null',
  'true',
  '0',
  '-1',
  '1e-7',
  '9007199254740991',
  '"\u00e9\ud83d\ude00\\u0000\\n\\"\\\\"',
  '{"":[],"a":{"b":[1,2.5,-3e-9,"x",null,true,false]},"\ud83d\ude00":0,"\ufb33":1}',
  ' { "a" : [ 1 , 2 ] }\r\n\t',
  '[[[[[[[[[[[[{"a":{"b":{"c":{}}}}]]]]]]]]]]]]',
  '{"schema":"x","secret":[1,2,255],"placement":{"kind":"bearer_authorization"}}',
]

export function jsonSeeds(): readonly Uint8Array[] {
  const documents = frozenDocuments().filter(({ canonical }) => canonical.length < 6_000)
  return [...TEXTS, ...documents.map(({ canonical }) => canonical)].map(text => Buffer.from(text))
}
