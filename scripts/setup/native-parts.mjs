// Owns the compiled C: the addon and the static programs, built by one binding.gyp when a source changed.
import { join } from 'node:path'
import { logPath, RECORDS, ROOT } from './checkout.mjs'
import { SetupFailure } from './failure.mjs'
import { runLongStep } from './long-step.mjs'
import { npmCommand, npmEnvironment } from './npm.mjs'
import { digestOfSources, filesBelow, isUpToDate, lookOfOutputs, writeStamp } from './stamps.mjs'

const OUTPUTS = ['chio_native.node', 'cage-init', 'chio-exec', 'cage-probe'].map(
  name => `native/build/Release/${name}`,
)

/** @param {string} path */
function isNativeSource(path) {
  return !path.startsWith('native/build/') && !path.endsWith('.ts') && !path.endsWith('.md')
}

/** Builds the native parts where they are older than their sources. */
export async function provideNativeParts() {
  const stampPath = join(RECORDS, 'native.json')
  const circumstances = `${process.version} ${process.arch}`
  const sources = digestOfSources(ROOT, filesBelow(ROOT, ['native'], isNativeSource), circumstances)
  if (isUpToDate(stampPath, sources, lookOfOutputs(ROOT, OUTPUTS))) return false
  await runLongStep({
    title: 'building the native parts (node-gyp)',
    command: npmCommand(['run', 'build:native']),
    environment: npmEnvironment(),
    folder: ROOT,
    logPath: logPath('native'),
  })
  const outputs = lookOfOutputs(ROOT, OUTPUTS)
  if (outputs === undefined)
    throw new SetupFailure(`node-gyp made not all of ${OUTPUTS.join(', ')}: see ${logPath('native')}`)
  writeStamp(stampPath, { sources, outputs })
  return true
}
