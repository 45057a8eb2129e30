//! The dashboards: `contrib/grafana/lydian.json` of nodes, `lydian-front.json` of front ends. Input: the panels.
//! Output: JSON in Grafana's format for import, with variables for the data source, the job and the node or front end.

use super::front_panels::FRONT_PANELS;
use super::panels::{PANELS, Panel};
use serde_json::{Value, json};

/// The labels that choose the node.
const CHOICE: &str = "job=\"$job\",instance=~\"$instance\"";

/// Grafana's grid.
const WIDTH: u64 = 24;
const STAT_SIZE: (u64, u64) = (6, 4);
const LINES_SIZE: (u64, u64) = (8, 8);

/// The version of the format: Grafana 10 and later.
const SCHEMA_VERSION: u64 = 39;

/// A dashboard.
struct Board {
    title: &'static str,
    uid: &'static str,
    /// The document that has its figures.
    figures: &'static str,
    /// A figure that everything has that it is about.
    of_all: &'static str,
    panels: &'static [Panel],
}

const NODE: Board =
    Board { title: "Lydian", uid: "lydian", figures: "docs/metrics.md", of_all: "lydian_build_info", panels: PANELS };

const FRONT: Board = Board {
    title: "Lydian front ends",
    uid: "lydian-front",
    figures: "docs/scale.md and docs/metrics.md",
    of_all: "lydian_front_up",
    panels: FRONT_PANELS,
};

pub(super) fn document() -> String {
    printed(&NODE)
}

pub(super) fn front_document() -> String {
    printed(&FRONT)
}

fn printed(board: &Board) -> String {
    let mut text = serde_json::to_string_pretty(&dashboard(board)).unwrap_or_default();
    text.push('\n');
    text
}

fn dashboard(board: &Board) -> Value {
    let Board { title, uid, figures, of_all, .. } = board;
    json!({
        "title": title,
        "uid": uid,
        "description": format!("Generated from the table of figures by `make generate`; every figure is in {figures}."),
        "tags": ["bitcoin", "lydian"],
        "schemaVersion": SCHEMA_VERSION,
        "editable": true,
        "graphTooltip": 1,
        "refresh": "30s",
        "time": {"from": "now-6h", "to": "now"},
        "templating": {"list": [
            {"name": "datasource", "label": "Data source", "type": "datasource", "query": "prometheus"},
            variable("job", &format!("label_values({of_all}, job)"), false),
            variable("instance", &format!("label_values({of_all}{{job=\"$job\"}}, instance)"), true),
        ]},
        "panels": panels(board.panels),
    })
}

fn source() -> Value {
    json!({"type": "prometheus", "uid": "${datasource}"})
}

fn variable(name: &str, query: &str, is_multi: bool) -> Value {
    json!({
        "name": name, "type": "query", "datasource": source(), "query": query, "refresh": 2, "multi": is_multi,
        "includeAll": is_multi,
    })
}

/// The panels below the headings of their rows, from left to right.
fn panels(of: &'static [Panel]) -> Vec<Value> {
    let (mut all, mut row) = (Vec::new(), "");
    // Where the next panel stands, and the height of its line.
    let (mut x, mut y, mut height) = (0, 0, 0);
    for panel in of {
        let (wide, high) = if panel.is_stat { STAT_SIZE } else { LINES_SIZE };
        if panel.row != row || x + wide > WIDTH || height != high {
            (x, y, height) = (0, y + height, high);
        }
        if panel.row != row {
            row = panel.row;
            let place = json!({"x": 0, "y": y, "w": WIDTH, "h": 1});
            all.push(json!({"id": all.len() + 1, "type": "row", "title": row, "collapsed": false, "gridPos": place, "panels": []}));
            y += 1;
        }
        all.push(one(panel, all.len() + 1, &json!({"x": x, "y": y, "w": wide, "h": high})));
        x += wide;
    }
    all
}

fn one(panel: &Panel, id: usize, place: &Value) -> Value {
    let letters = 'A'..='Z';
    let targets: Vec<Value> = panel
        .queries
        .iter()
        .zip(letters)
        .map(|(query, letter)| {
            json!({
                "refId": letter.to_string(), "datasource": source(), "legendFormat": query.legend,
                "expr": query.expression.replace('%', CHOICE),
            })
        })
        .collect();
    let mut value = json!({
        "id": id, "title": panel.title, "datasource": source(), "gridPos": place, "targets": targets,
        "type": if panel.is_stat { "stat" } else { "timeseries" },
        "fieldConfig": {"defaults": {"unit": panel.unit}, "overrides": []},
    });
    if !panel.is_stat {
        value["options"] = json!({"tooltip": {"mode": "multi", "sort": "desc"}});
    }
    value
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn panels_do_not_overlap() {
        for (board, rows) in [(NODE, 6), (FRONT, 4)] {
            let mut taken = std::collections::BTreeSet::new();
            let mut ids = std::collections::BTreeSet::new();
            let panels = panels(board.panels);
            for panel in &panels {
                assert!(ids.insert(panel["id"].as_u64()));
                let of = |name: &str| panel["gridPos"][name].as_u64().unwrap();
                assert!(of("x") + of("w") <= WIDTH, "{panel}");
                for x in of("x")..of("x") + of("w") {
                    for y in of("y")..of("y") + of("h") {
                        assert!(taken.insert((x, y)), "{panel}");
                    }
                }
            }
            assert_eq!(panels.len(), board.panels.len() + rows, "{}: a heading for each row", board.title);
        }
    }
}
