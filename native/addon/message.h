#ifndef CHIO_MESSAGE_H
#define CHIO_MESSAGE_H

#include <node_api.h>

#include "control.h"

/* {payload, credentials | null}; takes ownership of the malloc'ed payload, whatever happens. */
napi_value message_value(napi_env env, uint8_t *payload, const struct received *received);

#endif
