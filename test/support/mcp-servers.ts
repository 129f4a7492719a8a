// Owns MCP servers in Python for cages: an honest one, and what each of the others does instead. They use nothing but
// the standard library, as a user's own would.
import { type ResolvedTool, resolveTool } from '../../cage/index.js'

const HEAD = `
import json, os, sys, time

def read():
    line = sys.stdin.readline()
    if not line: sys.exit(3)
    return json.loads(line)

def write(text):
    sys.stdout.write(text + '\\n')
    sys.stdout.flush()

def say(message): write(json.dumps(message))
def result(question, members): say({'jsonrpc': '2.0', 'id': question['id'], 'result': members})
def notify(method): say({'jsonrpc': '2.0', 'method': method, 'params': {'level': 'info', 'data': 'x'}})

OPENED = {'protocolVersion': '2025-11-25', 'capabilities': {'tools': {}}, 'serverInfo': {'name': 's', 'version': '1'}}
LISTED = {'tools': [{'name': 'issue', 'inputSchema': {'type': 'object'}}]}

def open_session():
    result(read(), OPENED)
    read()

def until_called():
    open_session()
    result(read(), LISTED)
    return read()

def exactly(count):
    received = b''
    while len(received) < count:
        piece = os.read(8, count - len(received))
        if not piece: sys.exit(4)
        received += piece
    return received

def submit():
    frame = open('/run/chio/request.frame', 'rb').read()
    while frame: frame = frame[os.write(8, frame):]
    answer = json.loads(exactly(int.from_bytes(exactly(4), 'big')))
    return json.loads(bytes(answer['response']))

def answered(document): return {'content': [], 'structuredContent': document, 'isError': False}
`

/** A server whose behaviour is this Python, below what all of them share. */
export function pythonServer(behaviour: string): ResolvedTool {
  return resolveTool('/usr/bin/python3', ['-c', `${HEAD}\n${behaviour}`])
}

/** Opens, lists, submits, answers, and goes on reading until its input ends. */
export const HONEST = `
question = until_called()
result(question, answered(submit()))
sys.stdin.read()
`

/** As honest, but changes the document before it answers. */
export const withDocument = (change: string): string => `
question = until_called()
document = submit()
${change}
result(question, answered(document))
sys.stdin.read()
`

/** As honest, but answers the call with another result. */
export const withResult = (members: string): string => `
question = until_called()
document = submit()
result(question, ${members})
sys.stdin.read()
`
