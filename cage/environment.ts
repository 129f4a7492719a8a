/**
 * Which variables may be named for a tool. The cage's environment is exactly the policy's map; these rules keep a
 * policy from passing loader hooks, service-manager handles, or a secret beside the broker that exists to hide it.
 * Source: ld.so(8), the denied names of the brokered profile.
 */
const NAME = /^[A-Za-z_][A-Za-z0-9_]*$/
const COUNT_MAXIMUM = 256
const VALUE_MAXIMUM_BYTES = 16 * 1024
const TOTAL_MAXIMUM_BYTES = 64 * 1024

/** They make the dynamic loader, a shell, an interpreter or a TLS library load or log what the value names. */
const DENIED_PREFIXES = [
  'LD_',
  'DYLD_',
  'BASH_FUNC_',
  'MALLOC_',
  'PYTHON',
  'PERL5',
  'RUBY',
  'LISTEN_',
  'WATCHDOG_',
]

// biome-ignore format: a list
const DENIED_NAMES = new Set([
  'BASH_ENV', 'ENV', 'IFS', 'NODE_OPTIONS', 'NODE_PATH', 'NODE_EXTRA_CA_CERTS', 'NODE_TLS_REJECT_UNAUTHORIZED',
  'GIT_ASKPASS', 'SSL_CERT_FILE', 'SSL_CERT_DIR', 'SSLKEYLOGFILE', 'SSH_AUTH_SOCK', 'DOCKER_CONFIG', 'KRB5CCNAME',
  'JAVA_TOOL_OPTIONS', 'NOTIFY_SOCKET', 'DBUS_SESSION_BUS_ADDRESS', 'CREDENTIALS_DIRECTORY',
])

/** Interpreter settings that load nothing. */
const ADMITTED_NAMES = new Set(['PYTHONUNBUFFERED', 'PYTHONDONTWRITEBYTECODE', 'PYTHONUTF8'])

const SECRET_WORDS =
  /token|secret|password|passwd|credential|api_?key|private_?key|access_?key|authorization/i

function checkName(name: string): void {
  if (!NAME.test(name)) {
    throw new RangeError('"environment" expected names of letters, digits and _, got another character')
  }
  if (ADMITTED_NAMES.has(name)) return
  const hook = DENIED_NAMES.has(name) || DENIED_PREFIXES.some(prefix => name.startsWith(prefix))
  if (hook) throw new RangeError(`"environment" expected no loader or interpreter hook, got ${name}`)
  if (SECRET_WORDS.test(name)) {
    throw new RangeError(
      `"environment" expected no name of a secret, got ${name}; the broker holds credentials`,
    )
  }
}

export function checkEnvironment(environment: Readonly<Record<string, string>>): void {
  const entries = Object.entries(environment)
  if (entries.length > COUNT_MAXIMUM) {
    throw new RangeError(`"environment" expected at most ${COUNT_MAXIMUM} variables, got ${entries.length}`)
  }
  let total = 0
  for (const [name, value] of entries) {
    checkName(name)
    const bytes = Buffer.byteLength(value)
    total += Buffer.byteLength(name) + bytes
    if (bytes > VALUE_MAXIMUM_BYTES || value.includes('\0')) {
      throw new RangeError(
        `"environment" expected at most ${VALUE_MAXIMUM_BYTES} bytes without NUL in ${name}, got ${bytes}`,
      )
    }
  }
  if (total > TOTAL_MAXIMUM_BYTES) {
    throw new RangeError(`"environment" expected at most ${TOTAL_MAXIMUM_BYTES} bytes in all, got ${total}`)
  }
}
