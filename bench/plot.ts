// Owns the picture of a row: every sample of both sides as a dot on one scale, the median as a line. Plain SVG.
import type { BenchRow, Measured } from './row.js'
import { quantileOf } from './statistics.js'

const WIDTH = 720
const LANE_HEIGHT = 90
const LEFT = 30
const RIGHT = 30
const TOP = 46
const AXIS_HEIGHT = 40
const TICKS = 6
const COLOURS = ['#1b6ca8', '#a8541b'] as const

const escaped = (text: string): string =>
  text.replaceAll('&', '&amp;').replaceAll('<', '&lt;').replaceAll('>', '&gt;')

interface Scale {
  readonly end: number
  x(value: number): number
}

/** From zero, so that a ratio looks like what it is. */
function scaleOf(samples: readonly number[]): Scale {
  const end = Math.max(...samples) * 1.02 || 1
  return { end, x: value => LEFT + (value / end) * (WIDTH - LEFT - RIGHT) }
}

/** The same scatter every time: a sample's place in its lane says nothing but that there is one. */
function laneOffset(index: number): number {
  return (((index * 37) % 29) / 29 - 0.5) * (LANE_HEIGHT * 0.45)
}

function lane(label: string, samples: readonly number[], index: number, scale: Scale): string[] {
  const middle = TOP + LANE_HEIGHT * (index + 0.6)
  const colour = COLOURS[index]
  const dots = samples.map((sample, place) => {
    const [x, y] = [scale.x(sample).toFixed(1), (middle + laneOffset(place)).toFixed(1)]
    return `<circle cx="${x}" cy="${y}" r="2.2" fill="${colour}" fill-opacity="0.45"/>`
  })
  const median = scale.x(quantileOf(samples, 0.5)).toFixed(1)
  const [from, to] = [middle - LANE_HEIGHT * 0.32, middle + LANE_HEIGHT * 0.32]
  return [
    `<text x="${LEFT}" y="${middle - LANE_HEIGHT * 0.38}" fill="${colour}">${escaped(label)}</text>`,
    ...dots,
    `<line x1="${median}" x2="${median}" y1="${from}" y2="${to}" stroke="${colour}" stroke-width="2"/>`,
  ]
}

function axis(unit: string, y: number, scale: Scale): string[] {
  const marks = Array.from({ length: TICKS + 1 }, (_none, tick) => (scale.end * tick) / TICKS)
  return [
    `<line x1="${LEFT}" x2="${WIDTH - RIGHT}" y1="${y}" y2="${y}" stroke="#888"/>`,
    ...marks.map(
      mark =>
        `<text x="${scale.x(mark).toFixed(1)}" y="${y + 18}" text-anchor="middle" fill="#555">${mark.toPrecision(3)}</text>`,
    ),
    `<text x="${WIDTH - RIGHT}" y="${y + 34}" text-anchor="end" fill="#555">${escaped(unit)}</text>`,
  ]
}

/** @returns the document; empty when nothing was measured. */
export function plotOf(row: BenchRow, { ours, theirs }: Measured): string {
  if (ours.length === 0) return ''
  const lanes = [
    { label: row.ours, samples: ours },
    { label: row.theirs, samples: theirs },
  ].filter(({ samples }) => samples.length > 0)
  const scale = scaleOf(lanes.flatMap(({ samples }) => samples))
  const axisY = TOP + LANE_HEIGHT * lanes.length + 10
  const height = axisY + AXIS_HEIGHT
  const body = [
    `<text x="${LEFT}" y="24" font-size="15" fill="#222">${escaped(`${row.id} (goal ${row.goal.text})`)}</text>`,
    ...lanes.flatMap(({ label, samples }, index) => lane(label, samples, index, scale)),
    ...axis(row.unit, axisY, scale),
  ]
  const frame = `width="${WIDTH}" height="${height}" viewBox="0 0 ${WIDTH} ${height}"`
  return `<svg xmlns="http://www.w3.org/2000/svg" ${frame} font-family="sans-serif" font-size="12">
<rect width="100%" height="100%" fill="#fff"/>
${body.join('\n')}
</svg>
`
}
