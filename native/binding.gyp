# One build for the three native parts: the addon, and the two static programs that run inside the cage.
# Warnings are errors. The programs are static PIE, stripped: they need nothing of the host's libraries.
{
  'target_defaults': {
    'cflags!': ['-Wno-unused-parameter'],
    'cflags': [
      '-std=c17', '-Wall', '-Wextra', '-Wshadow', '-Wformat=2',
      '-fvisibility=hidden', '-fstack-protector-strong',
    ],
    'defines': ['_GNU_SOURCE'],
    'configurations': {
      'Release': {
        'cflags': ['-Werror', '-U_FORTIFY_SOURCE', '-D_FORTIFY_SOURCE=3'],
        'ldflags': ['-Wl,-z,relro', '-Wl,-z,now', '-Wl,-z,noexecstack'],
      },
    },
    'target_conditions': [
      ['_type=="executable"', {
        'cflags!': ['-fPIC', '-fno-omit-frame-pointer'],
        'cflags': ['-fPIE', '-ffunction-sections', '-fdata-sections'],
        'ldflags!': ['-rdynamic'],
        'ldflags': ['-static-pie', '-s', '-Wl,--gc-sections'],
      }],
    ],
  },
  'targets': [
    {
      'target_name': 'chio_native',
      'sources': [
        'addon/clock.c',
        'addon/connect.c',
        'addon/control.c',
        'addon/datagram.c',
        'addon/descriptor.c',
        'addon/dumps.c',
        'addon/environment.c',
        'addon/failure.c',
        'addon/inheritance.c',
        'addon/lock.c',
        'addon/memfd.c',
        'addon/message.c',
        'addon/module.c',
        'addon/operation.c',
        'addon/passing.c',
        'addon/peer.c',
        'addon/pidfd.c',
        'addon/read.c',
        'addon/socket.c',
        'addon/value.c',
        'addon/wait.c',
        'addon/write.c',
      ],
      'defines': ['NAPI_VERSION=8'],
    },
    {
      'target_name': 'cage-init',
      'type': 'executable',
      'sources': [
        'cage-init/channel.c',
        'cage-init/descriptors.c',
        'cage-init/execute.c',
        'cage-init/handoff.c',
        'cage-init/main.c',
        'cage-init/plan.c',
        'cage-init/request-files.c',
        'cage-init/walls.c',
        'cage-init/warden.c',
      ],
    },
    {
      'target_name': 'chio-exec',
      'type': 'executable',
      'sources': [
        'chio-exec/failure.c',
        'chio-exec/main.c',
        'chio-exec/prepared-stream.c',
        'chio-exec/request.c',
        'chio-exec/response.c',
      ],
    },
  ],
}
