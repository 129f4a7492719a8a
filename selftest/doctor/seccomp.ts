// Whether the kernel can filter a process's calls as the cage does, and ask another thread about one of them, which
// is how exactly one exec is let through. Which filters arm is shown by the cage that was tried.
// Source: seccomp(2) /proc/sys/kernel/seccomp/actions_avail, seccomp_unotify(2).
import { type Check, missing, ok } from './check.js'
import { kernelText } from './kernel-value.js'

const NAME = 'seccomp'
const NEEDED = ['allow', 'errno', 'kill_process', 'user_notif']

export interface SeccompFound {
  /** null: the kernel has no filters. */
  readonly actions: readonly string[] | null
}

export function findSeccomp(): SeccompFound {
  return { actions: kernelText('/proc/sys/kernel/seccomp/actions_avail')?.split(' ') ?? null }
}

export function judgeSeccomp({ actions }: SeccompFound): Check {
  const remedy = 'boot a kernel with CONFIG_SECCOMP_FILTER, 5.10 or later'
  if (actions === null) return missing(NAME, 'the kernel has no filters', remedy)
  const lacking = NEEDED.filter(action => !actions.includes(action))
  if (lacking.length > 0) return missing(NAME, `no ${lacking.join(', ')}`, remedy)
  return ok(NAME, 'filters, and user notification for the one exec')
}
