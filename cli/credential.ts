// chio credential provision | disable | list. The secret enters by standard input alone; it is never echoed,
// printed or put into an argument.
import { BrokerError, isBrokerError } from '../protocol/errors.js'
import { MAXIMUM_SECRET_BYTES } from '../protocol/limits.js'
import { type CredentialPlacement, parsePlacement } from '../protocol/placement.js'
import { asAdministrator } from './administrator.js'
import { beside } from './columns.js'
import { fromOption, namedText } from './named-text.js'
import { type CommonOptions, print } from './output.js'
import { findState, layoutOfState } from './state.js'

export interface ProvisionOptions extends CommonOptions {
  readonly provider: string
  readonly placement: string
}

/** Reads a secret from a stream; one final newline is not part of it. The caller wipes it. */
export async function readSecret(input: AsyncIterable<Uint8Array>): Promise<Buffer> {
  const chunks: Uint8Array[] = []
  let bytes = 0
  for await (const chunk of input) {
    chunks.push(chunk)
    bytes += chunk.length
    if (bytes > MAXIMUM_SECRET_BYTES + 2) break
  }
  const whole = Buffer.concat(chunks)
  for (const chunk of chunks) chunk.fill(0)
  const end =
    whole.at(-1) === 0x0a ? (whole.at(-2) === 0x0d ? whole.length - 2 : whole.length - 1) : whole.length
  const secret = whole.subarray(0, end)
  if (secret.length >= 1 && secret.length <= MAXIMUM_SECRET_BYTES) return secret
  whole.fill(0)
  throw new BrokerError(
    'usage',
    `secret refused: expected 1 to ${MAXIMUM_SECRET_BYTES} bytes on standard input, got ${secret.length}`,
  )
}

/** A terminal shows what is typed, and keeps it in its scrollback. */
function refuseTerminal({ isTTY }: NodeJS.ReadStream): void {
  if (!isTTY) return
  throw new BrokerError(
    'usage',
    'secret refused: standard input is a terminal, where it would be shown; use < file or a pipe',
  )
}

/** Provisions version 1 of a credential. */
export async function provisionCredential(id: string, options: ProvisionOptions): Promise<void> {
  const layout = layoutOfState(findState(options.state))
  const placement = fromOption('--placement', () => parsePlacement(options.placement))
  const credential = {
    credentialId: namedText(id, 'credential id'),
    provider: namedText(options.provider, '--provider'),
    version: 1,
  }
  refuseTerminal(process.stdin)
  const secret = await readSecret(process.stdin)
  try {
    const receipt = await asAdministrator(layout, administrator =>
      administrator.provision({ credential, placement, secret }),
    ).catch(existing(id))
    const document = {
      schema: 'chio.credential-provisioned.v1',
      credential,
      placement,
      operationId: receipt.body.operationId,
    }
    print(options, document, [
      `Credential ${id} version 1 of ${options.provider} is stored (${options.placement}).`,
    ])
  } finally {
    secret.fill(0)
  }
}

/** The broker says `conflict` of a version that exists; versions are never replaced. */
function existing(id: string): (error: unknown) => never {
  return error => {
    if (!isBrokerError(error) || error.code !== 'conflict') throw error
    throw new BrokerError(
      'credential_exists',
      `credential refused: expected an id that is new, got ${id}, which exists in version 1; use another id (a rotation is not there yet)`,
      { cause: error },
    )
  }
}

/** Disables every stored version of an id: an emergency is no moment to ask which. Repeating it is safe. */
export async function disableCredential(id: string, options: CommonOptions): Promise<void> {
  const credentialId = namedText(id, 'credential id')
  const layout = layoutOfState(findState(options.state))
  const disabled = await asAdministrator(layout, async administrator => {
    const versions = (await administrator.credentials()).filter(
      ({ credential }) => credential.credentialId === credentialId,
    )
    if (versions.length === 0) throw notStored(credentialId)
    const done = []
    for (const { credential } of versions) {
      const { body } = await administrator.disable(credential)
      done.push({ credential, operationId: body.operationId })
    }
    return done
  })
  const document = { schema: 'chio.credential-disabled.v1', disabled }
  print(
    options,
    document,
    disabled.flatMap(({ credential: { provider, version } }) => [
      `Credential ${id} version ${version} of ${provider} is disabled: nothing is sent with it any more.`,
    ]),
  )
}

function notStored(id: string): BrokerError {
  return new BrokerError(
    'credential_unavailable',
    `credential refused: expected one that is stored, got ${id}; see chio credential list`,
  )
}

/** Shows references and placements, never a value. */
export async function listCredentials(options: CommonOptions): Promise<void> {
  const layout = layoutOfState(findState(options.state))
  const credentials = await asAdministrator(layout, administrator => administrator.credentials())
  const lines = credentials.flatMap(({ credential, enabled, placement }) => {
    const { credentialId, provider, version } = credential
    const state = enabled ? 'enabled' : 'disabled'
    const line = `${credentialId} version ${version}  provider ${provider}  ${placementText(placement)}  ${state}`
    return line.length <= 80 ? [line] : beside('', line, 0)
  })
  print(
    options,
    { schema: 'chio.credential-list.v1', credentials },
    lines.length > 0 ? lines : ['No credentials.'],
  )
}

/** The operator's form of a placement. */
export function placementText(placement: CredentialPlacement): string {
  switch (placement.kind) {
    case 'api_key_header':
      return 'api-key'
    case 'basic_authorization':
      return `basic:${placement.user}`
    case 'bearer_authorization':
      return 'bearer'
    case 'named_header':
      return `header:${placement.header}`
  }
}
