#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""client-go and Volcano's typed clientset, as controllers use them: go/clientgo/main.go."""

from clients import Site, about, go_own, pinned

about("client-go with Volcano's clientset",
      f"{pinned('k8s.io/client-go')}, volcano.sh/apis {pinned('volcano.sh/apis')}",
      "protobuf bodies and answers, informers, exec and port-forward over WebSocket and SPDY, typed "
      "apply, leader election, Volcano's informers")
program = go_own("clientgo")
Site().tap(program)
