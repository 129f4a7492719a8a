// Owns the line that says where figures come from: without it a figure in milliseconds means nothing.
import { cpus, loadavg, release } from 'node:os'

export function machineLine(): string {
  const processors = cpus()
  const model = processors[0]?.model.trim() ?? 'unknown processor'
  const load = loadavg()[0]?.toFixed(2) ?? '?'
  return `${processors.length} × ${model}, Linux ${release()}, Node ${process.versions.node}, load ${load} before`
}
