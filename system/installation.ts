// Makes the files of an installation: folders, keys, configurations, pins, each with its one owner. Starts
// nothing and never overwrites: an existing installation is refused. A key is written by its owner's file
// mode alone and wiped from memory here.
// Must never: work in a folder that is another uid's already: whoever owns it could put a link where root is about
// to write or to give a file away. Everything is made as ours, closed to others, and handed over at the end,
// innermost first.
import { lstatSync } from 'node:fs'
import { dirname } from 'node:path'
import { BrokerError } from '../protocol/errors.js'
import type { PublicKey } from '../protocol/keys.js'
import { brokerConfiguration, hostPins, kernelConfiguration } from './configuration.js'
import { Handover } from './handover.js'
import { areSeparate, encodeIdentities, type Identities, type Identity } from './identities.js'
import type { ClientUser, InstallationKeys, InstallationPlan } from './installation-plan.js'
import { makeKeyFile } from './key-file.js'
import { hostLayout, type Layout } from './layout.js'
import { retainFileNow } from './retained-file.js'

/**
 * Makes an installation.
 * @throws BrokerError `installation_exists` when STATE already holds one, `installation_unfinished` when it holds a part
 * of one; nothing is changed then. `custody` when a folder of
 * it stands already and is another uid's.
 */
export function makeInstallation(plan: InstallationPlan): InstallationKeys {
  const { layout } = plan
  assertNone(layout)
  const handover = new Handover()
  makeFolders(plan, handover)
  const keys = makeKeys(plan, handover)
  writeDocuments(plan, keys, handover)
  handover.complete()
  return keys
}

/** A part of an installation is what an init left that did not finish, or one that has lost something since. */
function assertNone(layout: Layout): void {
  const parts = [
    layout.broker.masterKey,
    layout.broker.receiptKey,
    ...Object.values(layout.kernel.keys),
    layout.adminKey,
    layout.broker.config,
    layout.kernel.config,
    layout.identities,
    layout.pins,
    layout.kernelPublicKey,
    layout.kernel.store,
    layout.broker.store,
  ]
  const missing = parts.filter(path => !stands(path))
  if (missing.length === parts.length) return
  const [first] = missing
  if (first === undefined) {
    throw new BrokerError(
      'installation_exists',
      `init refused: expected no installation at ${layout.state}, got one; name another --state`,
    )
  }
  throw new BrokerError(
    'installation_unfinished',
    `init refused: expected no installation at ${layout.state}, got a part of one, without ${first}`,
  )
}

/** What we may not look at is there: it is somebody's. Below a file there is nothing. */
function stands(path: string): boolean {
  try {
    return lstatSync(path, { throwIfNoEntry: false }) !== undefined
  } catch (error) {
    return (error as NodeJS.ErrnoException).code !== 'ENOTDIR'
  }
}

function makeFolders({ layout, identities, administrator, clients }: InstallationPlan, to: Handover): void {
  const { broker, kernel } = identities
  const shared = areSeparate(identities) || administrator.uid !== broker.uid
  to.folder(layout.state, administrator, shared ? 0o711 : 0o700)
  to.folder(layout.run, administrator, shared ? 0o711 : 0o700)
  for (const [path, owner] of [
    [layout.broker.directory, broker],
    [dirname(layout.broker.masterKey), broker],
    [layout.kernel.directory, kernel],
    [dirname(layout.kernel.keys.kernel), kernel],
    [dirname(dirname(layout.adminKey)), administrator],
    [dirname(layout.adminKey), administrator],
  ] as const) {
    to.folder(path, owner, 0o700)
  }
  socketFolders(layout, identities, to)
  to.folder(dirname(hostLayout(layout.state, 0).directory), administrator, shared ? 0o711 : 0o700)
  for (const client of clients) makeClientFolders(layout, client, to)
}

/** Each socket lives alone in a directory that its daemon's own group may only traverse. */
export function makeSocketFolders(layout: Layout, identities: Identities): void {
  const handover = new Handover()
  socketFolders(layout, identities, handover)
  handover.complete()
}

function socketFolders(layout: Layout, identities: Identities, to: Handover): void {
  const mode = areSeparate(identities) ? 0o710 : 0o700
  to.folder(dirname(layout.broker.socket), identities.broker, mode)
  to.folder(dirname(layout.kernel.hostSocket), identities.kernel, mode)
  to.folder(dirname(layout.kernel.authoritySocket), identities.kernel, mode)
}

function makeClientFolders(layout: Layout, client: ClientUser, to: Handover): void {
  const host = hostLayout(layout.state, client.uid)
  for (const path of [host.directory, dirname(host.callerKey), host.runs]) to.folder(path, client, 0o700)
}

function makeKeys(plan: InstallationPlan, to: Handover): InstallationKeys {
  const { layout, identities, administrator } = plan
  const make = (path: string, owner: Identity): PublicKey => {
    to.file(path, owner)
    return makeKey(path)
  }
  make(layout.broker.masterKey, identities.broker)
  make(layout.kernel.keys.storage, identities.kernel)
  const callers = new Map<number, PublicKey>()
  for (const client of plan.clients) {
    const host = hostLayout(layout.state, client.uid)
    make(host.journalKey, client)
    callers.set(client.uid, make(host.callerKey, client))
  }
  return {
    receipt: make(layout.broker.receiptKey, identities.broker),
    kernel: make(layout.kernel.keys.kernel, identities.kernel),
    authority: make(layout.kernel.keys.authority, identities.kernel),
    issuer: make(layout.kernel.keys.issuer, identities.kernel),
    administrator: make(layout.adminKey, administrator),
    callers,
  }
}

function makeKey(path: string): PublicKey {
  const key = makeKeyFile(path)
  key.wipe()
  return key.publicKey
}

function writeDocuments(plan: InstallationPlan, keys: InstallationKeys, to: Handover): void {
  const { layout, identities, administrator } = plan
  const documents = [
    [layout.broker.config, brokerConfiguration(plan, keys), identities.broker, 0o600],
    [layout.kernel.config, kernelConfiguration(plan, keys), identities.kernel, 0o600],
    [layout.identities, encodeIdentities(identities), administrator, 0o644],
    [layout.pins, hostPins(plan, keys), administrator, 0o644],
    [layout.kernelPublicKey, Buffer.from(`${keys.kernel}\n`, 'latin1'), administrator, 0o644],
  ] as const
  for (const [path, bytes, owner, mode] of documents) {
    to.file(path, owner)
    retainFileNow(path, bytes, mode)
  }
}
