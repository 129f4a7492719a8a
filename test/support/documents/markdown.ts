// Owns what the tests of the documents read of a Markdown page: links, headings, fenced blocks, inline code. It
// must never count what stands in a fenced block as a link or as inline code.
import { readTree } from '../architecture/source-tree.js'

export interface Fence {
  readonly language: string
  /** The words of an HTML comment on the line before, `walk: init` for one; empty without. */
  readonly marker: string
  readonly text: string
  readonly line: number
}

export interface MarkdownPage {
  readonly path: string
  /** Without fenced blocks; lines keep their numbers. */
  readonly prose: string
  readonly fences: readonly Fence[]
}

/** Every page that is, or could be, committed. */
export function readPages(root: string): MarkdownPage[] {
  return readTree(root)
    .filter(({ path }) => path.endsWith('.md') && !path.startsWith('test/'))
    .map(({ path, text }) => parsePage(path, text))
}

export function parsePage(path: string, text: string): MarkdownPage {
  const prose: string[] = []
  const fences: Fence[] = []
  let open: { language: string; marker: string; lines: string[]; line: number } | undefined
  for (const [index, line] of text.split('\n').entries()) {
    const fence = /^```(\w*)/.exec(line)
    if (open === undefined && fence !== null) {
      const marker = /^<!-- (.*) -->$/.exec(prose.at(-1) ?? '')?.[1] ?? ''
      open = { language: fence[1] ?? '', marker, lines: [], line: index + 1 }
    } else if (open !== undefined && fence !== null) {
      fences.push({ ...open, text: `${open.lines.join('\n')}\n` })
      open = undefined
    } else if (open !== undefined) open.lines.push(line)
    prose.push(open === undefined && fence === null ? line : '')
  }
  if (open !== undefined) throw new SyntaxError(`${path}:${open.line} opens a block that nothing closes`)
  return { path, prose: prose.join('\n'), fences }
}

/** Targets of `[text](target)`. */
export function linksOf(page: MarkdownPage): string[] {
  return [...page.prose.matchAll(/\[[^\]]*\]\(([^)\s]+)\)/g)].map(match => match[1] ?? '')
}

export function inlineCodeOf(page: MarkdownPage): string[] {
  return [...page.prose.matchAll(/`([^`\n]+)`/g)].map(match => match[1] ?? '')
}

/** Anchors of the headings, as hosts of repositories make them. */
export function anchorsOf(page: MarkdownPage): string[] {
  return headingsOf(page).map(heading =>
    heading
      .toLowerCase()
      .replace(/[^\p{L}\p{N} _-]/gu, '')
      .replaceAll(' ', '-'),
  )
}

export function headingsOf(page: MarkdownPage): string[] {
  return [...page.prose.matchAll(/^#{1,6} (.+)$/gm)].map(match => match[1] ?? '')
}

/** Cells of every table row under a heading; the header and its rule are left out. */
export function tableUnder(page: MarkdownPage, heading: string): string[][] {
  const lines = page.prose.split('\n')
  const start = lines.findIndex(line => /^#{1,6} /.test(line) && line.replace(/^#+ /, '') === heading)
  if (start === -1) throw new RangeError(`${page.path} has no heading "${heading}"`)
  const end = lines.findIndex((line, index) => index > start && /^#{1,6} /.test(line))
  return tableRows(lines.slice(start + 1, end === -1 ? undefined : end))
}

export function tableRows(lines: readonly string[]): string[][] {
  return lines
    .filter((line, index) => line.startsWith('|') && !isHead(lines, index) && !isRule(line))
    .map(line => line.split('|').slice(1, -1))
    .map(cells => cells.map(cell => cell.trim()))
}

function isRule(line: string): boolean {
  return /^\|[\s|:-]+\|$/.test(line) && line.includes('-')
}

function isHead(lines: readonly string[], index: number): boolean {
  return isRule(lines[index + 1] ?? '')
}
