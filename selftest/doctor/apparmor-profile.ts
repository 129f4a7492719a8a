// The narrow remedy where AppArmor lets no unprivileged program make user namespaces (Ubuntu from 23.10 on): a
// profile for bwrap alone. Switching the restriction off would free every program of the machine.
// Source: apparmor.d(5) "userns"; Ubuntu's note on unprivileged user namespace restrictions.
import { BUBBLEWRAP_PATH } from '../../cage/index.js'

export const RESTRICTION = 'kernel.apparmor_restrict_unprivileged_userns'
const PROFILE_PATH = '/etc/apparmor.d/bwrap'

const PROFILE = `abi <abi/4.0>,
include <tunables/global>

profile bwrap ${BUBBLEWRAP_PATH} flags=(unconfined) {
  userns,

  include if exists <local/bwrap>
}`

/** What to do as root, the profile word by word. */
export const APPARMOR_REMEDY = `as root write these lines to ${PROFILE_PATH}:
${PROFILE}
then load it: apparmor_parser -r ${PROFILE_PATH}
(leave ${RESTRICTION} at 1)`
