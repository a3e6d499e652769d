// SPDX-License-Identifier: Apache-2.0
// Telling the service manager how we are: a datagram to the socket it names in NOTIFY_SOCKET.
#pragma once

/* "READY=1" and the like; nothing where nobody listens. */
void notify(const char *state);
