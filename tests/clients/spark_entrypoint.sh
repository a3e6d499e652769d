#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# What the image of Spark starts, with the arguments and the environment that Spark gives its pods.
# SPARK_HOME comes from the templates of spark_pi.py.
role=$1
shift
case $role in
    driver)
        exec "$SPARK_HOME/bin/spark-submit" --conf "spark.driver.bindAddress=$SPARK_DRIVER_BIND_ADDRESS" \
            --deploy-mode client "$@"
        ;;
    executor)
        options=$(env | sed -n 's/^SPARK_JAVA_OPT_[0-9]*=//p')
        # shellcheck disable=SC2086 # each option is a word
        exec java $options "-Xms$SPARK_EXECUTOR_MEMORY" "-Xmx$SPARK_EXECUTOR_MEMORY" \
            -cp "$SPARK_HOME/jars/*" org.apache.spark.scheduler.cluster.k8s.KubernetesExecutorBackend \
            --driver-url "$SPARK_DRIVER_URL" --executor-id "$SPARK_EXECUTOR_ID" \
            --cores "$SPARK_EXECUTOR_CORES" --app-id "$SPARK_APPLICATION_ID" \
            --hostname "$SPARK_EXECUTOR_POD_IP" --resourceProfileId "$SPARK_RESOURCE_PROFILE_ID" \
            --podName "$SPARK_EXECUTOR_POD_NAME"
        ;;
    *)
        echo "spark_entrypoint.sh: '$role': want driver or executor" >&2
        exit 2
        ;;
esac
