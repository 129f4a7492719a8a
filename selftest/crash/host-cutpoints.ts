// Owns the rows of the crash table in which a host ends, or what it started: the process in the cage before it runs
// the tool, and the tool.
import type { CutpointRow, Who } from './cutpoint.js'

const row = (who: Who, name: string, phase: CutpointRow['phase'], what: string): CutpointRow => ({
  name: `${who}.${name}`,
  who,
  story: 'run',
  phase,
  what,
})

export const HOST_CUTPOINTS: readonly CutpointRow[] = [
  row('host', 'grant.before', 'unreserved', 'before it reads its grant'),
  row('host', 'reserve.before', 'unreserved', 'before it reserves'),
  row('host', 'reserve.after', 'reserved', 'it has its reservation'),
  row('host', 'authorize.after', 'reserved', 'it has the signatures'),
  row('host', 'register.after', 'registered', 'the attempt is registered'),
  row('host', 'prepare.after', 'registered', 'it holds the stream, its journal is not written'),
  row('host', 'start.before', 'registered', 'its journal is written, nothing is started'),
  row('host', 'start.after', 'started', 'it was told of the start, nothing is handed over'),
  row('host', 'armed', 'started', 'every wall of the cage stands, the tool does not run'),
  row('host', 'handoff.after', 'sending', 'the tool runs'),
  row('host', 'outcome.before', 'sending', 'before it asks for the outcome'),
  row('host', 'outcome.after', 'answered', 'it has the outcome, before its journal is written'),
  row('host', 'finalize.before', 'answered', 'its journal is written, before the kernel is told'),
  row('host', 'finalize.after', 'answered', 'the kernel was told'),
  row('host', 'tool.after', 'answered', 'all is done'),
  row('cage-init', 'waiting', 'started', 'it waits for the stream'),
  row('cage-init', 'armed', 'started', 'every wall stands, the tool does not run'),
  row('tool', 'started', 'started', 'before its first byte'),
  row('tool', 'half_written', 'started', 'after 100 bytes of the frame'),
  row('tool', 'written', 'sending', 'after the whole frame'),
  row('tool', 'half_answered', 'answered', 'after 10 bytes of the answer'),
  row('tool', 'answered', 'answered', 'after the whole answer'),
]
