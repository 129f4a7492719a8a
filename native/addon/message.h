/*
 * How a received message becomes a JavaScript value.
 * Never reads from a socket itself: control.h does.
 */
#ifndef CHIO_MESSAGE_H
#define CHIO_MESSAGE_H

#include <node_api.h>

#include "control.h"

/* {payload, credentials | null}; takes ownership of the malloc'ed payload, whatever happens. */
napi_value message_value(napi_env env, uint8_t *payload, const struct received *received);

#endif
