// chio sidecar openapi: the OpenAPI description of the caller routes, for whoever writes a client before one is served.
// Made of the codecs that read and write the documents, the same as GET /v1/openapi.json.
import { openApiDocument } from '../sidecar/openapi.js'
import { type CommonOptions, jsonLine } from './output.js'
import { say } from './standard-output.js'

export function printOpenApi(options: CommonOptions): void {
  const document = openApiDocument()
  say(options.json === true ? jsonLine(document) : JSON.stringify(document, null, 2))
}
