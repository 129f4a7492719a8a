// chio init: makes an installation. As root: users and groups of their own for broker, kernel and cage;
// otherwise one uid, which must be asked for by name, since it protects less.
import { execFileSync } from 'node:child_process'
import { areSeparate, type Identities, type Identity, SINGLE_USER_SENTENCE } from '../system/identities.js'
import { allowedEnvironment } from '../system/environment.js'
import { makeInstallation } from '../system/installation.js'
import type { ClientUser, InstallationPlan } from '../system/installation-plan.js'
import type { Layout } from '../system/layout.js'
import { BrokerError } from '../protocol/errors.js'
import { MAXIMUM_SOCKET_PATH_BYTES } from '../protocol/limits.js'
import { provisionStores } from '../selftest/daemon-commands.js'
import { reachableProgram } from '../selftest/program-copy.js'
import { packageRoot } from '../native/index.js'
import { resolve } from 'node:path'
import { type CommonOptions, print } from './output.js'
import { parseApprover } from './approver.js'
import { parseLocalProviders } from './local-provider.js'
import { defaultState, layoutOfState, namedState } from './state.js'
import { findGroup, findUser, findUsers } from './users.js'

export interface InitOptions extends CommonOptions {
  readonly singleUser?: boolean
  readonly client: readonly string[]
  readonly approver: readonly string[]
  readonly localProvider: readonly string[]
}

/** Makes an installation and provisions both stores. */
export async function initialise(options: InitOptions): Promise<void> {
  const isRoot = process.geteuid?.() === 0
  assertLayoutNamed(options, isRoot)
  const layout = layoutOfState(resolve(options.state ?? namedState() ?? defaultState()))
  assertSocketsFit(layout)
  const localProviders = parseLocalProviders(options.localProvider)
  const separate = isRoot && options.singleUser !== true
  const identities = separate ? makeUsers() : singleUser()
  const clients = separate ? clientUsers(options.client, identities) : [{ ...self(), gids: ownGroups() }]
  const plan: InstallationPlan = {
    layout,
    identities,
    administrator: self(),
    clients,
    approvers: options.approver.map(parseApprover),
    tenantScope: 'default',
    localProviders,
  }
  const keys = makeInstallation(plan)
  const programRoot = separate ? reachableProgram(layout.state).root : packageRoot()
  await provisionStores({ layout, identities, programRoot })
  const document = {
    schema: 'chio.init.v1',
    state: layout.state,
    singleUser: !areSeparate(identities),
    brokerReceiptKey: keys.receipt,
    kernelKey: keys.kernel,
    clients: clients.map(client => client.uid),
  }
  const lines = [`Installation made in ${layout.state}.`, `Next: chio up --state ${layout.state}`]
  print(options, document, areSeparate(identities) ? lines : [...lines, SINGLE_USER_SENTENCE])
}

function assertLayoutNamed({ client, singleUser = false }: InitOptions, isRoot: boolean): void {
  if (!isRoot && !singleUser) {
    throw new BrokerError(
      'usage',
      'init refused: expected root, or --single-user, got another user without it; a single-user layout protects against the caged tool only, not against other processes of this user',
    )
  }
  if (singleUser && client.length > 0) {
    throw new BrokerError(
      'usage',
      'init refused: expected --client or --single-user, got both; a single-user layout has one client, its user',
    )
  }
}

/** Before anything is made: a socket's path is bounded by the system, and STATE stands in all of them. */
function assertSocketsFit({ broker, kernel, state }: Layout): void {
  const paths = [broker.socket, kernel.hostSocket, kernel.authoritySocket]
  const longest = Math.max(...paths.map(path => Buffer.byteLength(path)))
  if (longest <= MAXIMUM_SOCKET_PATH_BYTES) return
  const surplus = longest - MAXIMUM_SOCKET_PATH_BYTES
  throw new BrokerError(
    'usage',
    `--state refused: expected a path below which sockets fit into ${MAXIMUM_SOCKET_PATH_BYTES} bytes, got ${state}; choose one that is ${surplus} bytes shorter`,
  )
}

function self(): Identity {
  return { uid: process.geteuid?.() ?? 0, gid: process.getegid?.() ?? 0 }
}

function ownGroups(): number[] {
  return [...new Set([self().gid, ...(process.getgroups?.() ?? [])])].slice(0, 64)
}

/** One uid for both daemons; root still puts the tool under a uid of its own. */
function singleUser(): Identities {
  const cage = self().uid === 0 ? systemUser('chio-cage') : null
  return { broker: self(), kernel: self(), cage }
}

function makeUsers(): Identities {
  const broker = systemUser('chio-broker')
  const kernel = systemUser('chio-kernel')
  run('usermod', ['--append', '--groups', 'chio-kernel', 'chio-broker'])
  run('usermod', ['--append', '--groups', 'chio-broker', 'chio-kernel'])
  return { broker, kernel, cage: systemUser('chio-cage') }
}

/** A system user without a home or shell, and its group; kept when it exists. */
function systemUser(name: string): Identity {
  if (findGroup(name) === undefined) run('groupadd', ['--system', name])
  try {
    return findUser(name)
  } catch {
    run('useradd', [
      '--system',
      '--gid',
      name,
      '--no-create-home',
      '--home-dir',
      '/nonexistent',
      '--shell',
      '/usr/sbin/nologin',
      name,
    ])
    return findUser(name)
  }
}

/** Clients join both daemons' groups; without any named, the user behind sudo, else root itself. */
function clientUsers(named: readonly string[], identities: Identities): ClientUser[] {
  const sudoUser = process.env['SUDO_USER']
  const names = named.length > 0 ? named : sudoUser === undefined ? [] : [sudoUser]
  if (names.length === 0) return [{ ...self(), gids: [self().gid] }]
  return findUsers(names).map(user => {
    if (user.uid !== 0) run('usermod', ['--append', '--groups', 'chio-broker,chio-kernel', user.name])
    return { uid: user.uid, gid: user.gid, gids: [user.gid, identities.broker.gid, identities.kernel.gid] }
  })
}

function run(program: string, args: readonly string[]): void {
  try {
    execFileSync(program, args, { env: allowedEnvironment(), stdio: ['ignore', 'ignore', 'pipe'] })
  } catch (cause) {
    throw new BrokerError(
      'custody',
      `init refused: ${program} failed; see that the user database can be written`,
      { cause },
    )
  }
}
