// SPDX-License-Identifier: Apache-2.0

// What programs in Go do with client-go and Volcano's typed clientset: protobuf bodies, informers,
// streams, server-side apply, leases. Prints TAP.
package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"strings"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/wait"
	applycore "k8s.io/client-go/applyconfigurations/core/v1"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/cache"
	"k8s.io/client-go/tools/clientcmd"
	"k8s.io/client-go/tools/leaderelection"
	"k8s.io/client-go/tools/leaderelection/resourcelock"
	"k8s.io/client-go/tools/portforward"
	"k8s.io/client-go/tools/remotecommand"
	"k8s.io/client-go/transport/spdy"
	utilexec "k8s.io/client-go/util/exec"
	vcbatch "volcano.sh/apis/pkg/apis/batch/v1alpha1"
	vcclient "volcano.sh/apis/pkg/client/clientset/versioned"
	vcinformers "volcano.sh/apis/pkg/client/informers/externalversions"
)

const limit = 60 * time.Second

var (
	ctx    = context.Background()
	config *rest.Config
	client *kubernetes.Clientset
	count  int
	failed bool
)

func step(name string, run func() error) {
	count++
	if err := run(); err != nil {
		failed = true
		fmt.Printf("not ok %d - %s\n# %s\n", count, name, strings.ReplaceAll(err.Error(), "\n", "\n# "))
		return
	}
	fmt.Printf("ok %d - %s\n", count, name)
}

func until(what string, done func() (bool, error)) error {
	err := wait.PollUntilContextTimeout(ctx, 50*time.Millisecond, limit, true,
		func(context.Context) (bool, error) { return done() })
	if err != nil {
		return fmt.Errorf("%s: %w", what, err)
	}
	return nil
}

func podOf(name, script string) *corev1.Pod {
	return &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Name: name},
		Spec: corev1.PodSpec{RestartPolicy: corev1.RestartPolicyNever, Containers: []corev1.Container{{
			Name: "c", Image: "x", Command: []string{"sh", "-c", script},
			Env: []corev1.EnvVar{{Name: "IP", ValueFrom: &corev1.EnvVarSource{
				FieldRef: &corev1.ObjectFieldSelector{FieldPath: "status.podIP"}}}},
		}}},
	}
}

// protobufBodies sends kinds that most servers take in protobuf only when they take all.
func protobufBodies() error {
	typed := rest.CopyConfig(config)
	typed.ContentType = runtime.ContentTypeProtobuf
	typed.AcceptContentTypes = runtime.ContentTypeProtobuf + ",application/json"
	proto, err := kubernetes.NewForConfig(typed)
	if err != nil {
		return err
	}
	if _, err = proto.CoreV1().Pods("default").Create(ctx, podOf("run", "echo out; sleep 1000"), metav1.CreateOptions{}); err != nil {
		return err
	}
	revision := &appsv1.ControllerRevision{ObjectMeta: metav1.ObjectMeta{Name: "r"}, Revision: 1,
		Data: runtime.RawExtension{Raw: []byte(`{"a":1}`)}}
	if _, err = proto.AppsV1().ControllerRevisions("default").Create(ctx, revision, metav1.CreateOptions{}); err != nil {
		return err
	}
	got, err := proto.AppsV1().ControllerRevisions("default").Get(ctx, "r", metav1.GetOptions{})
	if err == nil && string(got.Data.Raw) != `{"a":1}` {
		err = fmt.Errorf("data: expected {\"a\":1}, got %s", got.Data.Raw)
	}
	return err
}

func informer() error {
	factory := informers.NewSharedInformerFactory(client, 0)
	pods := factory.Core().V1().Pods()
	lister := pods.Lister()
	pods.Informer()
	stop := make(chan struct{})
	defer close(stop)
	factory.Start(stop)
	factory.WaitForCacheSync(stop)
	return until("the informer shows the pod running", func() (bool, error) {
		pod, err := lister.Pods("default").Get("run")
		return err == nil && pod.Status.Phase == corev1.PodRunning, nil
	})
}

func logs() error {
	return until("the pod's output", func() (bool, error) {
		text, err := client.CoreV1().Pods("default").GetLogs("run", &corev1.PodLogOptions{}).DoRaw(ctx)
		return string(text) == "out\n", err
	})
}

func streamURL(pod, sub string) *rest.Request {
	return client.CoreV1().RESTClient().Post().Resource("pods").Namespace("default").Name(pod).SubResource(sub)
}

func command(open func(request *rest.Request) (remotecommand.Executor, error)) error {
	request := streamURL("run", "exec").VersionedParams(&corev1.PodExecOptions{
		Command: []string{"sh", "-c", "cat; exit 3"}, Stdin: true, Stdout: true}, scheme.ParameterCodec)
	executor, err := open(request)
	if err != nil {
		return err
	}
	var out bytes.Buffer
	err = executor.StreamWithContext(ctx, remotecommand.StreamOptions{
		Stdin: strings.NewReader("in and out\n"), Stdout: &out})
	var exit utilexec.CodeExitError
	if !errors.As(err, &exit) || exit.Code != 3 || out.String() != "in and out\n" {
		return fmt.Errorf("expected \"in and out\" and exit code 3, got %q and %v", out.String(), err)
	}
	return nil
}

func overWebSocket(request *rest.Request) (remotecommand.Executor, error) {
	return remotecommand.NewWebSocketExecutor(config, "GET", request.URL().String())
}

func overSPDY(request *rest.Request) (remotecommand.Executor, error) {
	return remotecommand.NewSPDYExecutor(config, "POST", request.URL())
}

// forwardWith forwards a port of a pod and reads a page through it.
func forwardWith(open func() (*portforward.PortForwarder, error)) error {
	_, err := client.CoreV1().Pods("default").Get(ctx, "web", metav1.GetOptions{})
	if err != nil {
		script := "cd $(mktemp -d); echo seen >page; exec python3 -u -m http.server --bind $IP 8125"
		if _, err = client.CoreV1().Pods("default").Create(ctx, podOf("web", script), metav1.CreateOptions{}); err != nil {
			return err
		}
	}
	err = until("the server serves", func() (bool, error) {
		text, _ := client.CoreV1().Pods("default").GetLogs("web", &corev1.PodLogOptions{}).DoRaw(ctx)
		return strings.Contains(string(text), "Serving"), nil
	})
	if err != nil {
		return err
	}
	forwarder, err := open()
	if err != nil {
		return err
	}
	defer forwarder.Close()
	broken := make(chan error, 1)
	go func() { broken <- forwarder.ForwardPorts() }()
	select {
	case <-forwarder.Ready:
	case err = <-broken:
		return fmt.Errorf("not forwarded: %w", err)
	case <-time.After(limit):
		return errors.New("not forwarded within a minute")
	}
	ports, err := forwarder.GetPorts()
	if err != nil {
		return err
	}
	answer, err := http.Get(fmt.Sprintf("http://127.0.0.1:%d/page", ports[0].Local))
	if err != nil {
		return err
	}
	defer answer.Body.Close()
	page, err := io.ReadAll(answer.Body)
	if err == nil && string(page) != "seen\n" {
		err = fmt.Errorf("page: expected \"seen\", got %q", page)
	}
	return err
}

func forwardSPDY() (*portforward.PortForwarder, error) {
	transport, upgrader, err := spdy.RoundTripperFor(config)
	if err != nil {
		return nil, err
	}
	dialer := spdy.NewDialer(upgrader, &http.Client{Transport: transport}, "POST", streamURL("web", "portforward").URL())
	return portforward.New(dialer, []string{"0:8125"}, nil, make(chan struct{}), io.Discard, io.Discard)
}

func forwardWebSocket() (*portforward.PortForwarder, error) {
	dialer, err := portforward.NewSPDYOverWebsocketDialer(streamURL("web", "portforward").URL(), config)
	if err != nil {
		return nil, err
	}
	return portforward.New(dialer, []string{"0:8125"}, nil, make(chan struct{}), io.Discard, io.Discard)
}

func apply() error {
	maps := client.CoreV1().ConfigMaps("default")
	first := applycore.ConfigMap("applied", "default").WithData(map[string]string{"a": "1", "b": "2"})
	if _, err := maps.Apply(ctx, first, metav1.ApplyOptions{FieldManager: "story"}); err != nil {
		return err
	}
	live, err := maps.Get(ctx, "applied", metav1.GetOptions{})
	if err != nil {
		return err
	}
	mine, err := applycore.ExtractConfigMap(live, "story")
	if err != nil {
		return err
	}
	delete(mine.Data, "b")
	done, err := maps.Apply(ctx, mine, metav1.ApplyOptions{FieldManager: "story"})
	if err == nil && len(done.Data) != 1 {
		err = fmt.Errorf("data: expected a alone, got %v", done.Data)
	}
	return err
}

func election() error {
	lock := &resourcelock.LeaseLock{LeaseMeta: metav1.ObjectMeta{Name: "story", Namespace: "default"},
		Client: client.CoordinationV1(), LockConfig: resourcelock.ResourceLockConfig{Identity: "me"}}
	inner, cancel := context.WithCancel(ctx)
	led := make(chan struct{})
	go leaderelection.RunOrDie(inner, leaderelection.LeaderElectionConfig{Lock: lock, ReleaseOnCancel: true,
		LeaseDuration: 15 * time.Second, RenewDeadline: 10 * time.Second, RetryPeriod: time.Second,
		Callbacks: leaderelection.LeaderCallbacks{
			OnStartedLeading: func(context.Context) { close(led) }, OnStoppedLeading: func() {}}})
	defer cancel()
	select {
	case <-led:
		return nil
	case <-time.After(limit):
		return errors.New("no leader within a minute")
	}
}

func discoveryGroups() error {
	lists, err := discovery.ServerPreferredResources(client.Discovery())
	if err == nil && len(lists) < 20 {
		err = fmt.Errorf("expected at least 20 groups, got %d", len(lists))
	}
	return err
}

func volcanoJob() error {
	typed, err := vcclient.NewForConfig(config)
	if err != nil {
		return err
	}
	factory := vcinformers.NewSharedInformerFactory(typed, 0)
	jobs, groups, queues := factory.Batch().V1alpha1().Jobs(), factory.Scheduling().V1beta1().PodGroups(), factory.Scheduling().V1beta1().Queues()
	synced := []cache.InformerSynced{jobs.Informer().HasSynced, groups.Informer().HasSynced, queues.Informer().HasSynced}
	stop := make(chan struct{})
	defer close(stop)
	factory.Start(stop)
	if !cache.WaitForCacheSync(stop, synced...) {
		return errors.New("the informers did not sync")
	}
	job := &vcbatch.Job{ObjectMeta: metav1.ObjectMeta{Name: "vc"}, Spec: vcbatch.JobSpec{
		MinAvailable: 2, Queue: "default", Tasks: []vcbatch.TaskSpec{{Name: "w", Replicas: 2,
			Template: corev1.PodTemplateSpec{Spec: podOf("", "exit 0").Spec}}}}}
	if _, err = typed.BatchV1alpha1().Jobs("default").Create(ctx, job, metav1.CreateOptions{}); err != nil {
		return err
	}
	return until("the informer shows the Job completed", func() (bool, error) {
		got, err := jobs.Lister().Jobs("default").Get("vc")
		return err == nil && got.Status.State.Phase == vcbatch.Completed && got.Status.Succeeded == 2, nil
	})
}

func main() {
	var err error
	if config, err = clientcmd.BuildConfigFromFlags("", os.Getenv("KUBECONFIG")); err == nil {
		client, err = kubernetes.NewForConfig(config)
	}
	if err != nil {
		fmt.Println("Bail out!", err)
		os.Exit(1)
	}
	step("typed objects are written and read in protobuf", protobufBodies)
	step("a shared informer follows a pod", informer)
	step("a log is read", logs)
	step("a command runs over WebSockets", func() error { return command(overWebSocket) })
	step("a command runs over SPDY", func() error { return command(overSPDY) })
	step("a port is forwarded over SPDY", func() error { return forwardWith(forwardSPDY) })
	step("a port is forwarded over WebSockets", func() error { return forwardWith(forwardWebSocket) })
	step("typed configurations are applied, extracted and applied again", apply)
	step("a leader is elected", election)
	step("discovery lists every group", discoveryGroups)
	step("Volcano's clientset and informers follow a Job to its end", volcanoJob)
	fmt.Printf("1..%d\n", count)
	if failed {
		os.Exit(1)
	}
}
