// Owns how samples become figures: median, high percentiles, and the median absolute deviation as spread.
// Must never: drop a sample. An outlier is part of what a caller would have waited.
// Source: Hyndman and Fan (1996), type 7 quantiles; Rousseeuw and Croux (1993) on the MAD.

export interface Summary {
  readonly unit: string
  readonly n: number
  readonly p50: number
  readonly p95: number
  readonly p99: number
  /** Median absolute deviation from the median, in the same unit. */
  readonly mad: number
}

/** Linear interpolation between the two neighbours of a rank. @param quantile from 0 to 1. */
export function quantileOf(samples: readonly number[], quantile: number): number {
  if (samples.length === 0) throw new RangeError('"samples" expected at least one, got none')
  const sorted = [...samples].sort((left, right) => left - right)
  const rank = (sorted.length - 1) * quantile
  const below = sorted[Math.floor(rank)] as number
  const above = sorted[Math.ceil(rank)] as number
  return below + (above - below) * (rank - Math.floor(rank))
}

/** Figures of one side; null without samples. */
export function summarise(unit: string, samples: readonly number[]): Summary | null {
  if (samples.length === 0) return null
  const p50 = quantileOf(samples, 0.5)
  const deviations = samples.map(sample => Math.abs(sample - p50))
  return {
    unit,
    n: samples.length,
    p50: rounded(p50),
    p95: rounded(quantileOf(samples, 0.95)),
    p99: rounded(quantileOf(samples, 0.99)),
    mad: rounded(quantileOf(deviations, 0.5)),
  }
}

/** Five digits: more would be noise that looks like knowledge. */
export function rounded(value: number): number {
  return Number(value.toPrecision(5))
}
