// Owns how tests name the check that refused a document of caller delivery, and how they spell one that no codec writes.
import { callerDeliveryCheckOf } from '../../protocol/caller-delivery-refusal.js'

/** The name of the check, `none`, or the other error. */
export function checkOf(act: () => unknown): string {
  try {
    act()
    return 'none'
  } catch (error) {
    return callerDeliveryCheckOf(error) ?? String(error)
  }
}

/** Members in order, whatever they hold: also numbers that our own writer refuses. */
export function sortedText(value: unknown): string {
  if (typeof value !== 'object' || value === null) return JSON.stringify(value)
  if (Array.isArray(value)) return `[${value.map(sortedText).join(',')}]`
  const members = Object.entries(value).sort(([left], [right]) => (left < right ? -1 : 1))
  return `{${members.map(([name, member]) => `${JSON.stringify(name)}:${sortedText(member)}`).join(',')}}`
}
