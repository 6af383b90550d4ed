package controllers

import (
	"encoding/json"
	"fmt"

	api "github.com/apitomy/axiom-operator/api/v1alpha1"
	"github.com/apitomy/axiom-operator/internal/engine"
)

const (
	// maxRunHistory entries stay in a status.
	maxRunHistory = 64
	// runHistoryPage entries, the oldest, leave it together.
	runHistoryPage = 32
)

// extendHistory appends what closed. Pages join the values on the shelf.
func extendHistory(history *api.RunHistory, closed []engine.Entry, shelf *runShelf) error {
	for _, entry := range closed {
		written, err := statusEntry(entry, shelf)
		if err != nil {
			return err
		}
		history.Entries = append(history.Entries, written)
		history.Total = written.Seq
	}
	return pageHistory(history, shelf)
}

// pageHistory moves the oldest entries into pages while there are too many.
func pageHistory(history *api.RunHistory, shelf *runShelf) error {
	for len(history.Entries) > maxRunHistory {
		oldest := history.Entries[:runHistoryPage]
		page := api.HistoryPage{Previous: history.Page, From: oldest[0].Seq, To: oldest[len(oldest)-1].Seq, Entries: oldest}
		data, err := json.Marshal(page)
		if err != nil {
			return fmt.Errorf("encode history page: %w", err)
		}
		history.Page = shelf.keep(data).ConfigMap
		history.Entries = history.Entries[runHistoryPage:]
	}
	return nil
}
