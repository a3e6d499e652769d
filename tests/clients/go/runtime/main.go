// SPDX-License-Identifier: Apache-2.0

// An operator as people write them with controller-runtime: a manager with a cached client, a leader
// election, a controller that owns what it makes, and webhooks that complete and refuse objects.
// Arguments: the directory of the webhooks' certificate, and their port.
package main

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"strconv"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"
	"sigs.k8s.io/controller-runtime/pkg/log/zap"
	metrics "sigs.k8s.io/controller-runtime/pkg/metrics/server"
	"sigs.k8s.io/controller-runtime/pkg/webhook"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"
)

type reconciler struct{ client.Client }

// Reconcile makes a Secret of the same name for every ConfigMap that asks for one.
func (r reconciler) Reconcile(ctx context.Context, request ctrl.Request) (ctrl.Result, error) {
	var from corev1.ConfigMap
	if err := r.Get(ctx, request.NamespacedName, &from); err != nil {
		return ctrl.Result{}, client.IgnoreNotFound(err)
	}
	if from.Data["secret"] == "" {
		return ctrl.Result{}, nil
	}
	made := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Name: from.Name, Namespace: from.Namespace}}
	_, err := controllerutil.CreateOrUpdate(ctx, r.Client, made, func() error {
		made.StringData = map[string]string{"text": from.Data["secret"]}
		return controllerutil.SetControllerReference(&from, made, r.Scheme())
	})
	return ctrl.Result{}, err
}

func decode(request admission.Request) (*corev1.ConfigMap, error) {
	var from corev1.ConfigMap
	err := json.Unmarshal(request.Object.Raw, &from)
	return &from, err
}

func complete(_ context.Context, request admission.Request) admission.Response {
	from, err := decode(request)
	if err != nil {
		return admission.Errored(http.StatusBadRequest, err)
	}
	if from.Data == nil {
		from.Data = map[string]string{}
	}
	if from.Data["secret"] == "" {
		from.Data["secret"] = "by default"
	}
	text, err := json.Marshal(from)
	if err != nil {
		return admission.Errored(http.StatusInternalServerError, err)
	}
	return admission.PatchResponseFromRaw(request.Object.Raw, text)
}

func refuse(_ context.Context, request admission.Request) admission.Response {
	from, err := decode(request)
	if err != nil {
		return admission.Errored(http.StatusBadRequest, err)
	}
	if from.Data["secret"] == "loud" {
		return admission.Denied("secrets are not loud")
	}
	return admission.Allowed("").WithWarnings("looked at")
}

func run() error {
	port, err := strconv.Atoi(os.Args[2])
	if err != nil {
		return err
	}
	manager, err := ctrl.NewManager(ctrl.GetConfigOrDie(), ctrl.Options{
		Metrics: metrics.Options{BindAddress: "0"}, LeaderElection: true,
		LeaderElectionID: "story", LeaderElectionNamespace: "default",
		WebhookServer: webhook.NewServer(webhook.Options{Host: "127.0.0.1", Port: port, CertDir: os.Args[1]}),
	})
	if err != nil {
		return err
	}
	server := manager.GetWebhookServer()
	server.Register("/complete", &webhook.Admission{Handler: admission.HandlerFunc(complete)})
	server.Register("/refuse", &webhook.Admission{Handler: admission.HandlerFunc(refuse)})
	err = ctrl.NewControllerManagedBy(manager).For(&corev1.ConfigMap{}).Owns(&corev1.Secret{}).
		Complete(reconciler{manager.GetClient()})
	if err != nil {
		return err
	}
	return manager.Start(ctrl.SetupSignalHandler())
}

func main() {
	ctrl.SetLogger(zap.New())
	if err := run(); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}
