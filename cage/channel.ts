/**
 * The host's end of the control socket to cage-init: short words over SOCK_SEQPACKET, each with its sender's
 * credentials from the kernel. A `failed CALL ERRNO` becomes the refusal that names it. Never carries the request.
 * Source: unix(7) SO_PASSCRED, SCM_CREDENTIALS.
 */
import { receiveMessage, type PeerCredentials } from '../native/index.js'
import { errnoName, refusedBy, refusedCall, refusedCheck } from './refusal.js'

/** cage-init's longest message is 96 bytes. */
const WORD_MAXIMUM_BYTES = 96

/** Its end: cage-init executed the tool, or is gone. */
export const ENDED = Symbol('control socket ended')

export interface Word {
  readonly text: string
  readonly sender: PeerCredentials
}

const FAILED = /^failed ([A-Za-z0-9_ -]+) (\d+)$/

/** @throws CageRefusal when cage-init names a failing call, or nothing came before the deadline. */
export async function receiveWord(control: number, deadlineBootNs: bigint): Promise<Word | typeof ENDED> {
  const message = await receiveMessage(control, deadlineBootNs, WORD_MAXIMUM_BYTES).catch(
    (error: unknown) => {
      throw refusedBy(error, 'cage-init')
    },
  )
  if (message === null) return ENDED
  const text = Buffer.from(message.payload).toString('latin1')
  const failed = FAILED.exec(text)
  if (failed !== null) throw refusedCall(failed[1]!, errnoName(Number(failed[2])))
  if (message.credentials === null) throw refusedCheck('cage-init', "the sender's credentials", 'none')
  return { text, sender: message.credentials }
}
