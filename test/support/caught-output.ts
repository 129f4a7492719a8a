// Owns what a command says on standard output while a test listens: caught, and shown to nobody.
import { vi } from 'vitest'

export interface CaughtOutput {
  /** What was said so far, without the newline at its end. */
  text(): string
  restore(): void
}

/** Listens until it is restored, by itself or with all mocks. */
export function catchOutput(): CaughtOutput {
  const said: string[] = []
  const spy = vi.spyOn(process.stdout, 'write').mockImplementation(piece => {
    said.push(String(piece))
    return true
  })
  return { restore: () => spy.mockRestore(), text: () => said.join('').replace(/\n$/, '') }
}
