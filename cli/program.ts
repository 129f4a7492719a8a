// The command line: names every command and its options, and hands each to its own file. Wiring only.
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { Command, CommanderError, Option } from 'commander'
import { packageRoot } from '../native/index.js'
import { startupHygiene } from '../system/startup.js'
import { listApprovals, makeApproverKey, showApproval } from './approval.js'
import { approveOperation, denyOperation } from './approval-word.js'
import { exportLog } from './audit-export.js'
import { verifyExport } from './audit-verify.js'
import { showCapacity } from './broker-capacity.js'
import { runCageSelftest } from './cage-selftest.js'
import { issueCapability, listCapabilities } from './capability.js'
import { revokeCapability } from './capability-revocation.js'
import { disableCredential, listCredentials, provisionCredential } from './credential.js'
import { runDoctor } from './doctor.js'
import { initialise } from './init.js'
import { acceptClock, showClock } from './clock.js'
import { explainOperation } from './explain.js'
import { reconcileOperation } from './reconcile.js'
import { printOpenApi } from './openapi.js'
import { cancelOperation, listOperations, showOperation, showOutcome } from './operation.js'
import { refuseMisuse } from './misuse.js'
import { asksForJson, type CommonOptions, fail } from './output.js'
import {
  acceptLedgerClock,
  adoptLedgerDevice,
  extendLedger,
  initialiseExecutor,
  showLedger,
} from './ledger.js'
import { runLedgerSelftest } from './ledger-selftest.js'
import { showReceipt } from './receipt-show.js'
import { verifyReceipts } from './receipt.js'
import { runTool } from './run.js'
import { runAllSelftests, runSelftest } from './selftest.js'
import { watchStandardOutput } from './standard-output.js'
import { installService } from './service.js'
import { showStatus } from './status.js'
import { adopt } from './store-adoption.js'
import { up } from './up.js'

const collect = (value: string, earlier: readonly string[]): string[] => [...earlier, value]

function version(): string {
  const { version: text } = JSON.parse(readFileSync(join(packageRoot(), 'package.json'), 'utf8')) as {
    version: string
  }
  return text
}

/** A command with the options that all of them take. */
function command(parent: Command, usage: string, summary: string): Command {
  return parent
    .command(usage)
    .description(summary)
    .option('--state <dir>', 'state folder of the installation')
    .option('--json', 'one JSON document instead of text')
}

function addCredential(program: Command): void {
  const credential = program.command('credential').description('store and disable credentials; list them')
  command(credential, 'provision <id>', 'store a credential; the secret is read from standard input')
    .requiredOption('--provider <name>', 'whose credential it is')
    .requiredOption('--placement <form>', 'bearer, api-key, basic:USER or header:NAME')
    .action(provisionCredential)
  command(credential, 'disable <id>', 'nothing is sent with it any more; repeating is safe').action(
    disableCredential,
  )
  command(credential, 'list', 'references and placements; never a value').action(listCredentials)
}

function addCapability(program: Command): void {
  const capability = program.command('capability').description('grant one endpoint to one client; revoke it')
  command(capability, 'issue', 'grant the use of a credential and print the grant')
    .requiredOption('--credential <id>', 'credential to use, in its newest version')
    .requiredOption('--url <url>', 'the one exact https URL')
    .requiredOption('--method <method>', 'the one HTTP method')
    .option('--client <user>', 'user who may use it (default: yourself)')
    .option('--header <name>', 'a header that the caller may send; may be repeated', collect, [])
    .option('--max <n>', 'how often it may be used in all', '1')
    .option('--approvals <n>', 'approvers who have to agree to each run', '0')
    .option('--expires <span>', 'how long it lives', '1h')
    .option('--max-body <bytes>', 'largest request body', '65536')
    .option('--max-response <bytes>', 'largest response', '262144')
    .option('--timeout <span>', 'longest wait for the provider', '30s')
    .action(issueCapability)
  command(capability, 'revoke <id>', 'revoke a grant at broker and kernel; repeating is safe')
    .option('--token', 'the id is that of a capability token of tool calls, known here or not')
    .action(revokeCapability)
  command(capability, 'list', 'grants and their use').action(listCapabilities)
}

function addOperation(program: Command): void {
  const operation = program
    .command('operation')
    .description('read operations; take back what was not started')
  command(operation, 'list', 'newest operations, where each stands and what settles it')
    .option('--limit <n>', 'how many', '20')
    .action(listOperations)
  command(operation, 'show <id>', 'one operation').action(showOperation)
  command(operation, 'outcome <id>', 'the recorded outcome of one operation; never sends anything').action(
    showOutcome,
  )
  command(operation, 'cancel <id>', 'take back an operation that was not started').action(cancelOperation)
  command(operation, 'reconcile <id>', 'state, signed, what the provider really did; changes no state')
    .requiredOption('--provider <deed>', 'acted, did-not-act or not-known')
    .requiredOption('--statement <text>', 'what was found, and where')
    .action(reconcileOperation)
}

function addApproval(program: Command): void {
  const approval = program.command('approval').description('what waits for approvers; agree or refuse')
  command(approval, 'list', 'operations that wait for approvers, the first deadline first')
    .option('--limit <n>', 'how many', '20')
    .action(listApprovals)
  command(approval, 'show <operation>', 'exactly what would be done, and who agreed').action(showApproval)
  const word = (usage: string, summary: string): Command =>
    command(approval, usage, summary)
      .option('--key-file <file>', 'the key of the approver (default: 32 bytes on standard input)')
      .option('--key-fd <fd>', 'the same from a sealed descriptor')
  word('approve <operation>', 'agree to exactly this operation').action(approveOperation)
  word('deny <operation>', 'refuse it: it is taken back').action(denyOperation)
  command(approval, 'key <file>', 'make a key for an approver and print its public half').action(
    makeApproverKey,
  )
}

function addService(program: Command): void {
  const service = program.command('service').description('the daemons as services of systemd')
  command(service, 'install', 'put the program into /usr/lib/chio and the units into /etc/systemd/system')
    .option('--root <dir>', 'install below this folder, as for a package')
    .action(installService)
}

function addReceipt(program: Command): void {
  const receipt = program.command('receipt').description("the kernel's signed receipts")
  command(receipt, 'show [id]', 'one receipt, and where it stands in the log')
    .option('--operation <id>', 'how this operation ended, or the newest decision about it')
    .option('--transcript', "with --operation: what this host's own journal kept of it")
    .action(showReceipt)
  command(receipt, 'verify', 'verify receipts of a file offline, one a line, with a pinned kernel key')
    .requiredOption('--input <file>', 'the receipts, one a line')
    .requiredOption('--trusted-kernel-pubkey <file>', 'the kernel key: 64 hex digits in a file')
    .action(verifyReceipts)
}

function addAudit(program: Command): void {
  const audit = program.command('audit').description("the kernel's log of receipts")
  command(audit, 'export', 'write receipts, checkpoints and a manifest into a new folder')
    .requiredOption('--output <dir>', 'folder to make')
    .action(exportLog)
  command(audit, 'verify <dir>', 'verify an export offline, with a pinned kernel key')
    .requiredOption('--trusted-kernel-pubkey <file>', 'the kernel key: 64 hex digits in a file')
    .option(
      '--from <path>',
      'a checkpoint that was kept, or an earlier export: proves that the log continues it',
    )
    .action(verifyExport)
}

function addStore(program: Command): void {
  const store = program.command('store').description('the file of a daemon that is stopped')
  command(
    store,
    'adopt <daemon>',
    "accept that the disk under the broker's or kernel's store was renumbered",
  ).action(adopt)
}

function addClock(program: Command): void {
  const clock = program.command('clock').description('whether the kernel believes its wall clock')
  command(clock, 'show', 'both hands, and what stops admission').action(showClock)
  command(clock, 'accept', 'sign that the wall clock is right as it is').action(acceptClock)
}

function addLedger(program: Command): void {
  const ledger = program.command('ledger').description('the ledger of an executor that carries calls out')
  const named = (usage: string, summary: string): Command =>
    command(ledger, usage, summary).requiredOption('--executor <file>', 'whose it is, as the kernel pins it')
  const signed = (usage: string, summary: string): Command =>
    named(usage, summary).requiredOption('--key <file>', "the executor's private key")
  command(ledger, 'init <dir>', 'make an executor: its key, its pin and its ledger, in a folder of its own')
    .requiredOption('--id <text>', "what the kernel's configuration calls it")
    .option('--capacity <n>', 'operations of the first segment, 1 to 64', '64')
    .action(initialiseExecutor)
  named('show <file>', 'judge it as a whole; how much room is left').action(showLedger)
  signed('extend <file>', 'sign a segment more; all that stands stays')
    .requiredOption('--by <n>', 'operations more, 1 to 64')
    .action(extendLedger)
  signed('accept-clock <file>', 'sign that the wall clock is right as it is').action(acceptLedgerClock)
  signed('adopt <file>', 'sign that the number of its disk alone has changed').action(adoptLedgerDevice)
}

function addSidecar(program: Command): void {
  const sidecar = program.command('sidecar').description('the HTTP routes of caller delivery')
  command(sidecar, 'openapi', 'print their OpenAPI description').action(printOpenApi)
}

function addRun(program: Command): void {
  command(
    program,
    'run [tool...]',
    'run one tool in a cage with one request; without a tool, submit it and print the answer',
  )
    .requiredOption('--capability <grant>', 'the grant to use once')
    .option('--body <file>', 'request body from a file, - for standard input')
    .option('--header <name:value>', 'a request header; may be repeated', collect, [])
    .option('--wait <span>', 'wait so long for approvers, and for the slot when another holds it')
    .option('--mcp', 'the tool is an MCP server; its one call is made here (default: chio-broker-mcp)')
    .option('--dry-run', 'show the request with a hole for the credential; nothing is sent')
    .addOption(
      new Option('--exec <rule>', 'whether the tool may start other programs of the cage')
        .choices(['allowed', 'once'])
        .default('allowed'),
    )
    .action(runTool)
}

function addSelftest(program: Command): void {
  for (const parent of [program, program.command('security').description('checks of this machine')]) {
    const selftest = parent.command('selftest').description('prove on this machine what the broker promises')
    command(selftest, 'cage', 'a hostile tool tries every way out of the cage').action(runCageSelftest)
    command(selftest, 'broker', 'the prepared connection, four cases')
      .option('--case <name>', 'only this case')
      .action((options: CommonOptions & { case?: string }) => runSelftest(options))
    command(selftest, 'ledger', "an executor's ledger: what it replays, refuses and does not know").action(
      runLedgerSelftest,
    )
    command(selftest, 'all', 'cage, broker and ledger in turn').action(runAllSelftests)
  }
}

function addInit(program: Command): void {
  command(program, 'init', 'make an installation')
    .option('--single-user', 'one uid for everything: protects against the caged tool only')
    .option('--client <user>', 'a user who may run tools; may be repeated', collect, [])
    .option('--approver <id=key>', 'who may approve, by public key; may be repeated', collect, [])
    .option(
      '--local-provider <host:port:ca>',
      'a provider on this machine and the PEM file of its authority, for trying; may be repeated',
      collect,
      [],
    )
    .action(initialise)
}

/** The whole command line. @param json whether wrong use of it prints one document. */
export function chio(json: boolean): Command {
  const program = new Command('chio')
    .description('run a tool you do not trust with a credential it never sees')
    .version(version())
  addInit(program)
  command(program, 'up', 'run both daemons in the foreground').action(up)
  command(program, 'status', 'what broker and kernel say of themselves').action(showStatus)
  command(program, 'doctor', 'whether this machine can do the main job, and what to mend').action(runDoctor)
  addCredential(program)
  addCapability(program)
  addRun(program)
  addApproval(program)
  addOperation(program)
  command(program, 'explain <id>', 'everything about one operation, and what to do').action(explainOperation)
  addClock(program)
  addService(program)
  addStore(program)
  addReceipt(program)
  addAudit(program)
  addLedger(program)
  addSidecar(program)
  addSelftest(program)
  command(
    program.command('broker').description('figures for planning'),
    'capacity',
    'how often one slot declines',
  )
    .requiredOption('--rate <n>', 'operations a second that arrive')
    .requiredOption('--hold <ms>', 'milliseconds for which one operation holds the slot')
    .action(showCapacity)
  refuseMisuse(program, json)
  return program
}

/** Runs the command that the arguments name, and sets the exit code. */
export async function runProgram(argv: readonly string[]): Promise<void> {
  const json = asksForJson(argv)
  watchStandardOutput()
  try {
    startupHygiene({ environment: {} })
    await chio(json).parseAsync([...argv])
  } catch (error) {
    if (error instanceof CommanderError) process.exitCode = error.exitCode === 0 ? 0 : 2
    else fail(error, json)
  }
}
