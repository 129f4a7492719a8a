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
    .map(({ name, target }) => ({ name, target, sources: sourcesOf(target) }))
    .filter(({ sources }) => !sources.some(source => paths.includes(source)))
    .map(
      ({ name, target, sources: [first] }) =>
        `package.json: ${name} is ${target}, but ${first} does not exist`,
    )
}

/** Where the source of a target may be. */
function sourcesOf(target: string): string[] {
  if (target.startsWith('native/build/')) return ['native/binding.gyp']
  const program = /^dist\/bin\/([\w-]+)\.js$/.exec(target)?.[1]
  // Programs are joined from the modules of cli/, and each example from those of its folder.
  if (program !== undefined) return [`cli/${program}.ts`, `examples/${program}/${program}.ts`]
  return [target.replace(/^dist\//, '').replace(/(\.d\.ts|\.js)$/, '.ts')]
}
