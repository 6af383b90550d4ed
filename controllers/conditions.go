package controllers

import (
	apimeta "k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// maxMessage keeps condition messages far below what the API server accepts.
const maxMessage = 2048

// conditionSetter sets conditions of one observed generation.
type conditionSetter struct {
	conditions *[]metav1.Condition
	generation int64
}

func (s conditionSetter) set(kind string, status metav1.ConditionStatus, reason, message string) {
	apimeta.SetStatusCondition(s.conditions, metav1.Condition{
		Type: kind, Status: status, Reason: reason, Message: truncate(message, maxMessage), ObservedGeneration: s.generation,
	})
}

func statusOf(holds bool) metav1.ConditionStatus {
	if holds {
		return metav1.ConditionTrue
	}
	return metav1.ConditionFalse
}

// truncate cuts a text to at most limit bytes, between characters.
func truncate(text string, limit int) string {
	if len(text) <= limit {
		return text
	}
	const mark = "…"
	cut := max(0, limit-len(mark))
	for cut > 0 && text[cut]&0xC0 == 0x80 {
		cut--
	}
	return text[:cut] + mark
}
