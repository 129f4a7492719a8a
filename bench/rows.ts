// Owns which rows there are, in the order in which they are measured and shown.
import type { BenchRow } from './row.js'
import { capacity } from './rows/capacity.js'
import { coldVsBwrap } from './rows/cold-vs-bwrap.js'
import { control } from './rows/control.js'
import { executeVsHttps } from './rows/execute-vs-https.js'
import { growth } from './rows/growth.js'
import { launchVsSrt } from './rows/launch-vs-srt.js'
import { operationVsBwrap } from './rows/operation-vs-bwrap.js'
import { rss } from './rows/rss.js'
import { slotRate } from './rows/slot-rate.js'
import { start } from './rows/start.js'
import { verifyRow } from './rows/verify.js'
import { vsNginx } from './rows/vs-nginx.js'
import { warmVsCold } from './rows/warm-vs-cold.js'

export const ROWS: readonly BenchRow[] = [
  executeVsHttps,
  operationVsBwrap,
  warmVsCold,
  coldVsBwrap,
  launchVsSrt,
  slotRate,
  vsNginx,
  start,
  rss,
  growth,
  verifyRow,
  control,
  capacity,
]
