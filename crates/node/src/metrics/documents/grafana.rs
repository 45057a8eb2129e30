//! `contrib/grafana/lydian.json`: the dashboard. Input: the panels. Output: JSON in Grafana's format for import, with
//! variables for the data source, the job and the node.

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

pub(super) fn document() -> String {
    let mut text = serde_json::to_string_pretty(&dashboard()).unwrap_or_default();
    text.push('\n');
    text
}

fn dashboard() -> Value {
    json!({
        "title": "Lydian",
        "uid": "lydian",
        "description": "Generated from the table of figures by `make generate`; every figure is in docs/metrics.md.",
        "tags": ["bitcoin", "lydian"],
        "schemaVersion": SCHEMA_VERSION,
        "editable": true,
        "graphTooltip": 1,
        "refresh": "30s",
        "time": {"from": "now-6h", "to": "now"},
        "templating": {"list": [
            {"name": "datasource", "label": "Data source", "type": "datasource", "query": "prometheus"},
            variable("job", "label_values(lydian_build_info, job)", false),
            variable("instance", "label_values(lydian_build_info{job=\"$job\"}, instance)", true),
        ]},
        "panels": panels(),
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
fn panels() -> Vec<Value> {
    let (mut all, mut row) = (Vec::new(), "");
    // Where the next panel stands, and the height of its line.
    let (mut x, mut y, mut height) = (0, 0, 0);
    for panel in PANELS {
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
        let mut taken = std::collections::BTreeSet::new();
        let mut ids = std::collections::BTreeSet::new();
        for panel in panels() {
            assert!(ids.insert(panel["id"].as_u64()));
            let of = |name: &str| panel["gridPos"][name].as_u64().unwrap();
            assert!(of("x") + of("w") <= WIDTH, "{panel}");
            for (x, y) in (of("x")..of("x") + of("w")).flat_map(|x| (of("y")..of("y") + of("h")).map(move |y| (x, y))) {
                assert!(taken.insert((x, y)), "{panel}");
            }
        }
        assert_eq!(panels().len(), PANELS.len() + 6, "six rows");
    }
}
