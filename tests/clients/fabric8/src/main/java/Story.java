// SPDX-License-Identifier: Apache-2.0
import io.fabric8.kubernetes.api.model.GenericKubernetesResource;
import io.fabric8.kubernetes.api.model.Pod;
import io.fabric8.kubernetes.api.model.PodBuilder;
import io.fabric8.kubernetes.client.KubernetesClient;
import io.fabric8.kubernetes.client.KubernetesClientBuilder;
import io.fabric8.kubernetes.client.LocalPortForward;
import io.fabric8.kubernetes.client.Watch;
import io.fabric8.kubernetes.client.Watcher;
import io.fabric8.kubernetes.client.WatcherException;
import io.fabric8.kubernetes.client.dsl.ExecWatch;
import io.fabric8.kubernetes.client.informers.ResourceEventHandler;
import io.fabric8.kubernetes.client.informers.SharedIndexInformer;
import java.io.ByteArrayOutputStream;
import java.net.URI;
import java.net.http.HttpClient;
import java.net.http.HttpRequest;
import java.net.http.HttpResponse;
import java.util.List;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.TimeUnit;

/** What programs built on fabric8 do first: watch, inform, create, read logs, execute, forward. */
public final class Story {
    interface Step {
        void run() throws Exception;
    }

    private static int count;
    private static boolean failed;
    private static KubernetesClient client;

    private static void step(String name, Step step) {
        count++;
        try {
            step.run();
            System.out.println("ok " + count + " - " + name);
        } catch (Exception | AssertionError error) {
            failed = true;
            System.out.println("not ok " + count + " - " + name);
            System.out.println("# " + String.valueOf(error).replace("\n", "\n# "));
        }
    }

    private static void within(String what, CountDownLatch latch) throws InterruptedException {
        if (!latch.await(60, TimeUnit.SECONDS)) {
            throw new AssertionError(what + ": not within 60 s");
        }
    }

    private static void expect(String what, Object got, Object want) {
        if (!want.equals(got)) {
            throw new AssertionError(what + ": expected " + want + ", got " + got);
        }
    }

    private static Pod pod(String name, String script) {
        return new PodBuilder().withNewMetadata().withName(name).addToLabels("app", name).endMetadata()
            .withNewSpec().withRestartPolicy("Never").addNewContainer().withName("c").withImage("x")
            .withCommand("sh", "-c", script)
            .addNewEnv().withName("IP").withNewValueFrom().withNewFieldRef()
            .withFieldPath("status.podIP").endFieldRef().endValueFrom().endEnv()
            .endContainer().endSpec().build();
    }

    private static void watch() throws Exception {
        CountDownLatch seen = new CountDownLatch(1);
        try (Watch watch = client.pods().inNamespace("default").withLabel("app", "watched").watch(
                new Watcher<Pod>() {
                    @Override
                    public void eventReceived(Action action, Pod pod) {
                        if (pod.getStatus() != null && "Running".equals(pod.getStatus().getPhase())) {
                            seen.countDown();
                        }
                    }

                    @Override
                    public void onClose(WatcherException cause) {
                    }
                })) {
            client.pods().inNamespace("default").resource(pod("watched", "echo out; sleep 1000")).create();
            within("an event of the running pod", seen);
        }
    }

    private static void inform() throws Exception {
        CountDownLatch seen = new CountDownLatch(1);
        SharedIndexInformer<Pod> informer = client.pods().inNamespace("default").inform(
            new ResourceEventHandler<Pod>() {
                @Override
                public void onAdd(Pod pod) {
                    if ("informed".equals(pod.getMetadata().getName())) {
                        seen.countDown();
                    }
                }

                @Override
                public void onUpdate(Pod before, Pod after) {
                }

                @Override
                public void onDelete(Pod pod, boolean unknown) {
                }
            }, 0);
        try {
            client.pods().inNamespace("default").resource(pod("informed", "true")).create();
            within("the informer sees the new pod", seen);
        } finally {
            informer.close();
        }
    }

    private static void log() throws Exception {
        String text = client.pods().inNamespace("default").withName("watched").getLog();
        expect("log", text, "out\n");
    }

    private static void exec() throws Exception {
        ByteArrayOutputStream out = new ByteArrayOutputStream();
        try (ExecWatch exec = client.pods().inNamespace("default").withName("watched")
                .writingOutput(out).exec("sh", "-c", "echo inside; exit 3")) {
            expect("exit code", exec.exitCode().get(60, TimeUnit.SECONDS), 3);
        }
        expect("output", out.toString(), "inside\n");
    }

    private static void forward() throws Exception {
        client.pods().inNamespace("default").resource(pod("web",
            "cd $(mktemp -d); echo seen >page; exec python3 -m http.server --bind $IP 8124")).create();
        client.pods().inNamespace("default").withName("web").waitUntilCondition(
            p -> "Running".equals(p.getStatus().getPhase()), 60, TimeUnit.SECONDS);
        client.pods().inNamespace("default").withName("web").waitUntilCondition(
            p -> listens(p.getStatus().getPodIP()), 60, TimeUnit.SECONDS);
        try (LocalPortForward port = client.pods().inNamespace("default").withName("web")
                .portForward(8124)) {
            HttpResponse<String> answer = HttpClient.newHttpClient().send(
                HttpRequest.newBuilder(URI.create("http://127.0.0.1:" + port.getLocalPort() + "/page"))
                    .build(), HttpResponse.BodyHandlers.ofString());
            expect("page", answer.body(), "seen\n");
        }
    }

    private static boolean listens(String address) {
        for (int k = 0; k < 600; k++) {
            try (java.net.Socket socket = new java.net.Socket(address, 8124)) {
                return true;
            } catch (java.io.IOException notYet) {
                java.util.concurrent.locks.LockSupport.parkNanos(50_000_000);
            }
        }
        return false;
    }

    private static void volcanoJobs() throws Exception {
        List<GenericKubernetesResource> jobs = client
            .genericKubernetesResources("batch.volcano.sh/v1alpha1", "Job").inNamespace("default")
            .list().getItems();
        expect("jobs", jobs.size(), 0);
    }

    public static void main(String[] args) {
        client = new KubernetesClientBuilder().build();
        step("a watch sees a pod start", Story::watch);
        step("an informer sees a new pod", Story::inform);
        step("the log of a pod is read", Story::log);
        step("a command runs in a pod, with its exit code", Story::exec);
        step("a port of a pod is forwarded", Story::forward);
        step("Volcano Jobs are listed", Story::volcanoJobs);
        System.out.println("1.." + count);
        System.exit(failed ? 1 : 0);
    }
}
