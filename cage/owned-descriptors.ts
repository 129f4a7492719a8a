/**
 * Descriptors that one step made and has to give back, whatever happens in between. Closes each once.
 */
import { closeDescriptor } from '../native/index.js'

export class OwnedDescriptors {
  readonly #open = new Set<number>()

  /** Takes what was just made, one or several, and hands it through. */
  own<T extends number | readonly number[]>(made: T): T {
    for (const fd of [made].flat() as number[]) this.#open.add(fd)
    return made
  }

  /** Someone else closes it from now on. */
  release(fd: number): number {
    this.#open.delete(fd)
    return fd
  }

  close(fd: number): void {
    if (this.#open.delete(fd)) closeDescriptor(fd)
  }

  closeAll(): void {
    for (const fd of this.#open) this.close(fd)
  }
}
