// SPDX-License-Identifier: Apache-2.0
// The Node object: what a node says about itself, and whether an object says the same.
#pragma once

#include "agent/node/node.h"

/* Fill the labels, the annotations and the status of a Node. */
void node_object_add_labels(struct node *n, struct json *labels);
void node_object_add_annotations(struct node *n, struct json *annotations);
void node_object_add_status(struct node *n, struct json *body);
/* Adds the node as owner to an object's metadata. */
void node_object_own(const struct node *n, struct json *meta);

/* A taint of nodes that are not ready; the agent removes it. */
bool node_object_is_unready_taint(const struct json *taint);
bool node_object_has_unready_taint(const struct json *root);
/* The object lacks a label or annotation of the node. */
bool node_object_lacks_words(struct node *n, const struct json *root);
/* The node lifecycle controller sets conditions to Unknown after missed heartbeats. */
bool node_object_is_doubted(const struct json *root);
/* The status fields that only the agent sets are right. Reports compare labels, too. */
bool node_object_is_as_said(struct node *n, const struct json *root);
/* The object already says what the node would report. */
bool node_object_is_told(struct node *n, const struct json *root);

/* Takes over the transition times that an earlier agent reported. */
void node_object_recall_conditions(struct node *n);
/* Returns true if the images of the machine have changed since the last report. */
bool node_object_update_images(struct node *n);
/* Measures the machine; returns true if a condition changed. */
bool node_object_update_pressure(struct node *n);
