// Owns how a rival's program comes here: packages of the distribution, fetched by apt and unpacked into a folder of
// the rival's own. Nothing of the system is installed or changed but, for root, apt's lists.
import { execFileSync } from 'node:child_process'
import { mkdirSync, readdirSync, rmSync } from 'node:fs'
import { join } from 'node:path'

/** @throws what apt or dpkg ended with. */
export function unpackPackages(folder: string, names: readonly string[]): void {
  mkdirSync(folder, { recursive: true })
  download(folder, names)
  for (const archive of readdirSync(folder).filter(name => name.endsWith('.deb'))) {
    execFileSync('dpkg-deb', ['-x', archive, '.'], { cwd: folder, stdio: 'pipe' })
    rmSync(join(folder, archive))
  }
}

function download(folder: string, names: readonly string[]): void {
  const apt = (...args: string[]): unknown => execFileSync('apt-get', args, { cwd: folder, stdio: 'pipe' })
  try {
    apt('download', ...names)
  } catch (error) {
    if (process.geteuid?.() !== 0) throw error
    apt('update', '-q')
    apt('download', ...names)
  }
}
