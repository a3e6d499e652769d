// SPDX-License-Identifier: Apache-2.0
// The controllers there are; manager_types of ctl.h lists them.
#pragma once

#include "controllers/ctl.h"

extern const struct ctl_type ctl_job;
