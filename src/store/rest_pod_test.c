// SPDX-License-Identifier: Apache-2.0
// Subresources of a running pod: ephemeral containers and resize.
#include "store/rest_story_test.h"

#define THROUGH(n, door)                                                                           \
    .req = {.verb = PORT_PATCH,                                                                    \
            .ns = NS,                                                                              \
            .name = HK_STR(n),                                                                     \
            .subresource = door,                                                                   \
            .patch = PORT_PATCH_STRATEGIC}
#define POD(n, resources)                                                                          \
    "{'metadata':{'name':'" n "'},'spec':{'containers':[{'name':'c','image':'i','resources':"      \
    "{" resources "}}]}}"

static void test_containers_are_added_and_stay(void **state)
{
    static const struct step steps[] = {
        {"Pod", CREATE, POD("p", ""), 201},
        {"Pod", THROUGH("p", "ephemeralcontainers"),
         "{'metadata':{'labels':{'no':'1'}},'spec':{'nodeName':'n','ephemeralContainers':[{'name':"
         "'look','image':'tools','targetContainerName':'c'}]}}",
         200,
         .see = {"spec.ephemeralContainers",
                 "[{\"name\":\"look\",\"image\":\"tools\",\"targetContainerName\":\"c\","
                 "\"imagePullPolicy\":\"Always\",\"terminationMessagePath\":"
                 "\"/dev/termination-log\",\"terminationMessagePolicy\":\"File\","
                 "\"resources\":{}}]",
                 "metadata.labels", "-", "spec.nodeName", "-"}},
        {"Pod", GET("p"), NULL, 200, .see = {"metadata.generation", "2"}},
        {"Pod", THROUGH("p", "ephemeralcontainers"),
         "{'spec':{'ephemeralContainers':[{'name':'look','image':'other'}]}}", 422, "Invalid",
         "Pod \"p\" is invalid: spec.ephemeralContainers: Forbidden: existing ephemeral containers "
         "\"look\" may not be changed"},
        {"Pod", THROUGH("p", "ephemeralcontainers"),
         "{'spec':{'ephemeralContainers':[{'$patch':'delete','name':'look'}]}}", 422, "Invalid",
         "Pod \"p\" is invalid: spec.ephemeralContainers: Forbidden: existing ephemeral containers "
         "\"look\" may not be removed"},
        {"Pod", THROUGH("p", "ephemeralcontainers"),
         "{'spec':{'ephemeralContainers':[{'name':'c','image':'i'}]}}", 422, "Invalid",
         .causes = "FieldValueDuplicate spec.ephemeralContainers[0].name; "},
        {"Pod", THROUGH("p", "ephemeralcontainers"),
         "{'spec':{'ephemeralContainers':[{'name':'d','ports':[{'containerPort':1}],"
         "'targetContainerName':'no'}]}}",
         422, "Invalid",
         .causes = "FieldValueNotFound spec.ephemeralContainers[0].targetContainerName; "
                   "FieldValueForbidden spec.ephemeralContainers[0].ports; "
                   "FieldValueRequired spec.ephemeralContainers[0].image; "},
        {"Pod", THROUGH("p", "ephemeralcontainers"),
         "{'spec':{'ephemeralContainers':[{'name':'Not A "
         "Name','image':'i','restartPolicy':'Always',"
         "'volumeMounts':[{'name':'none','mountPath':'/x','subPath':'y'}]}]}}",
         422, "Invalid",
         .causes = "FieldValueForbidden spec.ephemeralContainers[0].restartPolicy; "
                   "FieldValueForbidden spec.ephemeralContainers[0].volumeMounts[0].subPath; "
                   "FieldValueInvalid spec.ephemeralContainers[0].name; "
                   "FieldValueNotFound spec.ephemeralContainers[0].volumeMounts[0].name; "},
        {"Pod", THROUGH("p", "ephemeralcontainers"),
         "{'spec':{'ephemeralContainers':[{'name':'twice','image':'i'}]}}", 200},
    };

    rig_story(*state, steps);
}

static void test_sizes_change_within_the_class(void **state)
{
    static const struct step steps[] = {
        {"Pod", CREATE,
         POD("p", "'requests':{'cpu':'1','example.com/gpu':'1'},'limits':"
                  "{'example.com/gpu':'1'}"),
         201, .see = {"status.qosClass", "Burstable"}},
        {"Pod", THROUGH("p", "resize"),
         "{'spec':{'nodeName':'n','containers':[{'name':'c','image':'other','resources':"
         "{'requests':{'cpu':'2'}}}]}}",
         200,
         .see = {"spec.containers[0].image", "-", "spec.nodeName", "-", "metadata.generation",
                 "2"}},
        {"Pod", THROUGH("p", "resize"),
         "{'spec':{'containers':[{'name':'c','resources':{'requests':{'example.com/gpu':'2'},"
         "'limits':{'example.com/gpu':'2'}}}]}}",
         422, "Invalid",
         "Pod \"p\" is invalid: spec: Forbidden: only cpu and memory resources are mutable"},
        {"Pod", CREATE,
         POD("g", "'requests':{'cpu':'1','memory':'1Gi'},'limits':{'cpu':'1',"
                  "'memory':'1Gi'}"),
         201, .see = {"status.qosClass", "Guaranteed"}},
        {"Pod", THROUGH("g", "resize"),
         "{'spec':{'containers':[{'name':'c','resources':{'requests':{'cpu':'500m'}}}]}}", 422,
         "Invalid",
         "Pod \"g\" is invalid: spec: Invalid value: \"Burstable\": Pod QOS Class may not change "
         "as "
         "a result of resizing"},
    };

    rig_story(*state, steps);
}

static void test_a_larger_size_needs_room_in_the_quota(void **state)
{
    static const struct step steps[] = {
        {"ResourceQuota", CREATE, "{'metadata':{'name':'q'},'spec':{'hard':{'cpu':'2'}}}", 201},
        {"Pod", CREATE, POD("p", "'requests':{'cpu':'1'}"), 201},
        {"Pod", THROUGH("p", "resize"),
         "{'spec':{'containers':[{'name':'c','resources':{'requests':{'cpu':'3'}}}]}}", 403,
         "Forbidden",
         "pods \"p\" is forbidden: exceeded quota: q, requested: cpu=2, used: cpu=1, limited: "
         "cpu=2"},
        {"Pod", THROUGH("p", "resize"),
         "{'spec':{'containers':[{'name':'c','resources':{'requests':{'cpu':'2'}}}]}}", 200},
        {"ResourceQuota", GET("q"), NULL, 200, .see = {"status.used", "{\"cpu\":\"2\"}"}},
    };

    rig_story(*state, steps);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(containers_are_added_and_stay),
        TEST(sizes_change_within_the_class),
        TEST(a_larger_size_needs_room_in_the_quota),
    };

    cmocka_set_message_output(CM_OUTPUT_TAP);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
