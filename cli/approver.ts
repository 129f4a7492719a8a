// Who approves, as commands name them: an id for people and the public key that counts; and the key itself, which enters
// by a file, a descriptor or standard input and is wiped after one word.
import { BrokerError } from '../protocol/errors.js'
import { admitPublicKey, type SigningKey } from '../protocol/keys.js'
import { KEY_BYTES, MAXIMUM_APPROVAL_IDENTIFIER_BYTES } from '../protocol/limits.js'
import type { EligibleApprover } from '../protocol/threshold-proposal.js'
import { readKey } from '../system/key-file.js'
import { namedText } from './named-text.js'
import { given } from './output.js'
import { withKeyOf } from './wiped-key.js'

export interface ApproverKeyOptions {
  readonly keyFile?: string
  readonly keyFd?: string
}

/** `--approver lead=<64 hex digits>`. @throws BrokerError `usage`, or the key's own refusal. */
export function parseApprover(text: string): EligibleApprover {
  const at = text.lastIndexOf('=')
  if (at < 1) throw new BrokerError('usage', `--approver refused: expected ID=PUBLICKEY, got ${given(text)}`)
  const approverId = namedText(text.slice(0, at), '--approver', MAXIMUM_APPROVAL_IDENTIFIER_BYTES)
  return { approverId, publicKey: admitPublicKey(text.slice(at + 1), 'approver key') }
}

/** Signs with an approver's key and wipes it. */
export async function withApproverKey<T>(
  options: ApproverKeyOptions,
  act: (key: SigningKey) => Promise<T>,
): Promise<T> {
  return withKeyOf(await readSeed(options), act)
}

async function readSeed({ keyFd, keyFile }: ApproverKeyOptions): Promise<Uint8Array> {
  if (keyFd !== undefined && keyFile !== undefined) {
    throw new BrokerError('usage', 'approver key refused: expected --key-file or --key-fd, got both')
  }
  if (keyFile !== undefined) return readKey({ file: keyFile }, 'approver key')
  if (keyFd === undefined) return readSeedFrom(process.stdin)
  if (!/^[1-9][0-9]{0,5}$/.test(keyFd) || Number(keyFd) < 3) {
    throw new BrokerError('usage', `--key-fd refused: expected a descriptor from 3, got ${given(keyFd)}`)
  }
  return readKey({ fd: Number(keyFd) }, 'approver key')
}

/** Exactly the bytes of a key: the last one may well be a newline. */
async function readSeedFrom(input: NodeJS.ReadStream): Promise<Uint8Array> {
  if (input.isTTY) {
    throw new BrokerError('usage', 'approver key refused: standard input is a terminal; use --key-file')
  }
  const seed = Buffer.alloc(KEY_BYTES)
  let bytes = 0
  for await (const chunk of input as AsyncIterable<Buffer>) {
    chunk.copy(seed, Math.min(bytes, KEY_BYTES))
    chunk.fill(0)
    bytes += chunk.length
    if (bytes > KEY_BYTES) break
  }
  if (bytes === KEY_BYTES) return seed
  seed.fill(0)
  throw new BrokerError(
    'usage',
    `approver key refused: expected exactly ${KEY_BYTES} bytes on standard input, got ${bytes > KEY_BYTES ? 'more' : bytes}`,
  )
}
