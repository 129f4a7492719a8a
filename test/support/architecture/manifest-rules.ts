// Owns what package.json promises about files: every program and every export it names has a source here.

export interface DoorManifest {
  readonly bin?: Readonly<Record<string, string>>
  readonly exports?: Readonly<Record<string, string | Readonly<Record<string, string>>>>
}

/** Each compiled path must have its TypeScript; what the C build makes is named by its binding.gyp. */
export function checkDoors(manifest: DoorManifest, paths: readonly string[]): string[] {
  const programs = Object.entries(manifest.bin ?? {}).map(([name, target]) => ({
    name: `program ${name}`,
    target,
  }))
  const doors = Object.entries(manifest.exports ?? {}).flatMap(([name, target]) => {
    const targets = typeof target === 'string' ? [target] : Object.values(target)
    return targets.map(path => ({ name: `export ${name}`, target: path.replace(/^\.\//, '') }))
  })
  return [...programs, ...doors]
    .map(({ name, target }) => ({ name, target, source: sourceOf(target) }))
    .filter(({ source }) => !paths.includes(source))
    .map(({ name, target, source }) => `package.json: ${name} is ${target}, but ${source} does not exist`)
}

function sourceOf(target: string): string {
  if (target.startsWith('native/build/')) return 'native/binding.gyp'
  // Programs are joined from the modules of cli/.
  if (target.startsWith('dist/bin/')) return target.replace(/^dist\/bin\//, 'cli/').replace(/\.js$/, '.ts')
  return target.replace(/^dist\//, '').replace(/(\.d\.ts|\.js)$/, '.ts')
}
