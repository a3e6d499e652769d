// SPDX-License-Identifier: Apache-2.0
// Reports the state to the service manager through the socket in NOTIFY_SOCKET.
#pragma once

/* Sends "READY=1" and similar; does nothing without a service manager. */
void notify(const char *state);
