// The doctor: looks at the machine, at this user and at the installation, if there is one, and judges each. It starts
// no daemon, connects to none, opens no key, and leaves nothing behind.
import type { Layout } from '../../system/layout.js'
import { findBubblewrapOf, judgeBubblewrap } from './bubblewrap.js'
import { findCallerRoutes, judgeCallerRoutes } from './caller-routes.js'
import { findCage, judgeCage } from './cage.js'
import type { Check } from './check.js'
import { findClocks, judgeClocks } from './clocks.js'
import { findConfiguration, judgeConfiguration } from './configuration.js'
import { findDurableWrites, judgeDurableWrites } from './durable-writes.js'
import { judgeEnvironment } from './environment.js'
import { findGroups, judgeGroups } from './groups.js'
import { findInstallation, type Installation, judgeInstallation } from './installation.js'
import { findKeyFiles, judgeKeyFiles } from './key-files.js'
import { judgeLoopbackProviders } from './loopback-providers.js'
import { findPeerHandle, judgePeerHandle } from './peer-handles.js'
import { findPlatform, judgePlatform } from './platform.js'
import { findSeccomp, judgeSeccomp } from './seccomp.js'
import { findSockets, judgeSockets } from './sockets.js'
import { findUserNamespaces, judgeUserNamespaces } from './user-namespaces.js'
import { findUsers, judgeUsers } from './users.js'

export interface DoctorOptions {
  readonly layout: Layout
  readonly environment: NodeJS.ProcessEnv
  /** Another bwrap than the one that cages use, for a trial. */
  readonly bubblewrapPath?: string
}

/** Looks and judges; the cage, which decides, comes last. */
export async function examine(options: DoctorOptions): Promise<Check[]> {
  const { bubblewrapPath, environment, layout } = options
  const found = findInstallation(layout)
  const installation = found.kind === 'made' ? found.installation : null
  const identities = installation?.identities ?? null
  const namespaces = findUserNamespaces()
  const cage = await findCage({ identities, ...(bubblewrapPath !== undefined && { bubblewrapPath }) })
  return [
    judgePlatform(findPlatform()),
    judgeUserNamespaces(namespaces, cage.refusal === null),
    judgeBubblewrap(findBubblewrapOf(bubblewrapPath)),
    judgeSeccomp(findSeccomp()),
    judgePeerHandle(findPeerHandle()),
    judgeClocks(findClocks()),
    judgeDurableWrites(findDurableWrites(layout.state)),
    judgeEnvironment(environment),
    judgeInstallation(found),
    judgeUsers(findUsers(identities)),
    judgeSockets(findSockets(layout, identities)),
    ...(installation === null ? [] : judgeInside(installation)),
    judgeCage(cage, namespaces),
  ]
}

function judgeInside(installation: Installation): Check[] {
  const configuration = findConfiguration(installation)
  return [
    judgeGroups(findGroups(installation)),
    judgeKeyFiles(findKeyFiles(installation)),
    judgeConfiguration(configuration),
    judgeLoopbackProviders(configuration.broker),
    judgeCallerRoutes(findCallerRoutes(configuration.kernel, installation.identities)),
  ]
}
