// Whether an unprivileged process may make user namespaces, which the cage is built from: the kernel's limit,
// Debian's switch, AppArmor's restriction. Whether bwrap passes the last one shows the cage that was tried.
// Source: user_namespaces(7), /proc/sys/user/max_user_namespaces.
import { APPARMOR_REMEDY, RESTRICTION } from './apparmor-profile.js'
import { type Check, missing, ok } from './check.js'
import { kernelNumber } from './kernel-value.js'

const NAME = 'user-namespaces'

export interface UserNamespacesFound {
  /** null: the kernel has no user namespaces. */
  readonly maximum: number | null
  /** Debian's kernel.unprivileged_userns_clone; null where the kernel has no such switch. */
  readonly unprivilegedClone: number | null
  /** kernel.apparmor_restrict_unprivileged_userns; null where AppArmor has no such restriction. */
  readonly apparmorRestricts: number | null
}

export function findUserNamespaces(): UserNamespacesFound {
  return {
    maximum: kernelNumber('/proc/sys/user/max_user_namespaces'),
    unprivilegedClone: kernelNumber('/proc/sys/kernel/unprivileged_userns_clone'),
    apparmorRestricts: kernelNumber('/proc/sys/kernel/apparmor_restrict_unprivileged_userns'),
  }
}

/** @param cageOpened whether a cage could be launched all the same. */
export function judgeUserNamespaces(found: UserNamespacesFound, cageOpened: boolean): Check {
  const { maximum, unprivilegedClone } = found
  if (maximum === null)
    return missing(NAME, 'the kernel has none', 'boot a kernel that is built with CONFIG_USER_NS')
  if (maximum === 0)
    return missing(NAME, 'user.max_user_namespaces is 0', setting('user.max_user_namespaces', 15_000))
  if (unprivilegedClone === 0) {
    const name = 'kernel.unprivileged_userns_clone'
    return missing(NAME, `${name} is 0`, setting(name, 1))
  }
  const allowed = `at most ${maximum}`
  if (!isRestricted(found)) return ok(NAME, `${allowed}; AppArmor does not restrict them`)
  if (cageOpened) return ok(NAME, `${allowed}; ${RESTRICTION} is 1 and a profile lets bwrap through`)
  return missing(NAME, `${RESTRICTION} is 1, and no profile lets bwrap through`, APPARMOR_REMEDY)
}

export function isRestricted(found: UserNamespacesFound): boolean {
  return found.apparmorRestricts !== null && found.apparmorRestricts !== 0
}

/** Now, and after the next start of the machine. */
export function setting(name: string, value: number): string {
  return `as root: sysctl ${name}=${value}, and the line ${name} = ${value} in /etc/sysctl.d/60-chio.conf`
}
