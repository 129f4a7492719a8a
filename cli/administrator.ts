// Opens the administrator of an installation for one command; the key is read for it and wiped after it.
import { Administrator } from '../client/administrator.js'
import { systemClock } from '../native/clock.js'
import { signingKey } from '../protocol/keys.js'
import { ADMINISTRATOR_SUBJECT } from '../system/configuration.js'
import { readKey } from '../system/key-file.js'
import type { Layout } from '../system/layout.js'
import { readPins } from './host-session.js'

/** Runs a command as administrator and closes it whatever happens. */
export async function asAdministrator<T>(
  layout: Layout,
  act: (administrator: Administrator) => Promise<T>,
): Promise<T> {
  const { broker, kernel } = readPins(layout)
  const seed = readKey({ file: layout.adminKey }, 'admin key')
  const key = signingKey(seed)
  seed.fill(0)
  const administrator = new Administrator({
    broker,
    kernel,
    key,
    subject: ADMINISTRATOR_SUBJECT,
    clock: systemClock,
  })
  try {
    return await act(administrator)
  } finally {
    administrator.close()
  }
}
