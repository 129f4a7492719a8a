// Makes the files of an installation: folders, keys, configurations, pins, each with its one owner. Starts
// nothing and never overwrites: an existing installation is refused. A key is written by its owner's file
// mode alone and wiped from memory here.
import { randomBytes } from 'node:crypto'
import { chmodSync, chownSync, existsSync, mkdirSync } from 'node:fs'
import { dirname } from 'node:path'
import { BrokerError } from '../protocol/errors.js'
import { type PublicKey, signingKey } from '../protocol/keys.js'
import { KEY_BYTES } from '../protocol/limits.js'
import { brokerConfiguration, hostPins, kernelConfiguration } from './configuration.js'
import { areSeparate, encodeIdentities, type Identities, type Identity } from './identities.js'
import type { ClientUser, InstallationKeys, InstallationPlan } from './installation-plan.js'
import { writeKeyFile } from './key-file.js'
import { hostLayout, type Layout } from './layout.js'
import { retainFileNow } from './retained-file.js'

/**
 * Makes an installation.
 * @throws BrokerError `conflict` when STATE already holds one; nothing is changed then.
 */
export function makeInstallation(plan: InstallationPlan): InstallationKeys {
  const { layout } = plan
  if (existsSync(layout.broker.config) || existsSync(layout.kernel.config)) {
    throw new BrokerError(
      'conflict',
      `init refused: ${layout.state} already holds an installation; name another --state`,
    )
  }
  makeFolders(plan)
  const keys = makeKeys(plan)
  writeDocuments(plan, keys)
  return keys
}

function makeFolders({ layout, identities, administrator, clients }: InstallationPlan): void {
  const { broker, kernel } = identities
  const shared = areSeparate(identities) || administrator.uid !== broker.uid
  makeFolder(layout.state, administrator, shared ? 0o711 : 0o700)
  makeFolder(layout.run, administrator, shared ? 0o711 : 0o700)
  for (const [path, owner] of [
    [layout.broker.directory, broker],
    [dirname(layout.broker.masterKey), broker],
    [layout.kernel.directory, kernel],
    [dirname(layout.kernel.keys.kernel), kernel],
    [dirname(dirname(layout.adminKey)), administrator],
    [dirname(layout.adminKey), administrator],
  ] as const) {
    makeFolder(path, owner, 0o700)
  }
  makeSocketFolders(layout, identities)
  makeFolder(dirname(hostLayout(layout.state, 0).directory), administrator, shared ? 0o711 : 0o700)
  for (const client of clients) makeClientFolders(layout, client)
}

/** Each socket lives alone in a directory that its daemon's own group may only traverse. */
export function makeSocketFolders(layout: Layout, identities: Identities): void {
  const mode = areSeparate(identities) ? 0o710 : 0o700
  makeFolder(dirname(layout.broker.socket), identities.broker, mode)
  makeFolder(dirname(layout.kernel.hostSocket), identities.kernel, mode)
  makeFolder(dirname(layout.kernel.authoritySocket), identities.kernel, mode)
}

function makeClientFolders(layout: Layout, client: ClientUser): void {
  const host = hostLayout(layout.state, client.uid)
  for (const path of [host.directory, dirname(host.callerKey), host.runs]) makeFolder(path, client, 0o700)
}

function makeFolder(path: string, owner: Identity, mode: number): void {
  mkdirSync(path, { recursive: true, mode: 0o700 })
  own(path, owner)
  chmodSync(path, mode)
}

function own(path: string, owner: Identity): void {
  if (process.geteuid?.() === 0) chownSync(path, owner.uid, owner.gid)
}

function makeKeys(plan: InstallationPlan): InstallationKeys {
  const { layout, identities, administrator } = plan
  makeKey(layout.broker.masterKey, identities.broker)
  makeKey(layout.kernel.keys.storage, identities.kernel)
  const callers = new Map<number, PublicKey>()
  for (const client of plan.clients) {
    const host = hostLayout(layout.state, client.uid)
    makeKey(host.journalKey, client)
    callers.set(client.uid, makeKey(host.callerKey, client))
  }
  return {
    receipt: makeKey(layout.broker.receiptKey, identities.broker),
    kernel: makeKey(layout.kernel.keys.kernel, identities.kernel),
    authority: makeKey(layout.kernel.keys.authority, identities.kernel),
    issuer: makeKey(layout.kernel.keys.issuer, identities.kernel),
    administrator: makeKey(layout.adminKey, administrator),
    callers,
  }
}

function makeKey(path: string, owner: Identity): PublicKey {
  const seed = randomBytes(KEY_BYTES)
  try {
    writeKeyFile(path, seed)
    own(path, owner)
    const key = signingKey(seed)
    key.wipe()
    return key.publicKey
  } finally {
    seed.fill(0)
  }
}

function writeDocuments(plan: InstallationPlan, keys: InstallationKeys): void {
  const { layout, identities, administrator } = plan
  write(layout.broker.config, brokerConfiguration(plan, keys), identities.broker, 0o600)
  write(layout.kernel.config, kernelConfiguration(plan, keys), identities.kernel, 0o600)
  write(layout.identities, encodeIdentities(identities), administrator, 0o644)
  write(layout.pins, hostPins(plan, keys), administrator, 0o644)
}

function write(path: string, bytes: Uint8Array, owner: Identity, mode: number): void {
  retainFileNow(path, bytes, mode)
  own(path, owner)
}
