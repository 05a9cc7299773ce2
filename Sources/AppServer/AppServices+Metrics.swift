package import HTTPAPI

extension AppServices: MetricSource {
    package var limitHits: [(name: String, count: UInt64)] {
        let cut = self.counters.current.cut
        return [("apps.messageRate", cut[.tooMany] ?? 0), ("apps.backlog", cut[.tooSlow] ?? 0)]
    }

    package func write(to page: inout MetricsText) {
        let (values, mesh, gatherings) = (self.counters.current, self.mesh.size, self.gatherings.counts)
        page.gauge("earshot_app_connections", "Mesh and channel connections now.", values.connections)
        page.gauge("earshot_mesh_rooms", "Mesh rooms now.", mesh.rooms)
        page.gauges(
            "earshot_gatherings", "Channels (plain), classes and machines now, by kind.", "kind",
            GatheringKinds.all.map { ($0, Double(gatherings[$0] ?? 0)) })
        page.gauge("earshot_whiteboards_open", "Whiteboards that somebody looks at now.", self.boards.count)
        for (name, help, value) in [
            ("messages", "Messages received on mesh and channel connections.", values.messages),
            ("bad_messages", "Messages among these that could not be taken.", values.badMessages),
            ("undelivered", "Mesh frames dropped because they were for somebody in no or another room.", values.undelivered),
            ("push_heartbeats", "Reports of broadcasters.", values.heartbeats),
            ("rongcloud_failed", "Calls of RongCloud's API without a good answer.", values.rongCloudFailed),
            ("rongcloud_dropped", "Calls of RongCloud's API given up because too many waited.", values.rongCloudDropped),
        ] {
            page.counter("earshot_app_\(name)_total", help, value)
        }
        page.counters(
            "earshot_app_cut_total", "Mesh and channel connections that the server cut, by reason.", "reason",
            AppCounters.Cut.allCases.map { ($0.rawValue, values.cut[$0] ?? 0) })
        page.counters(
            "earshot_tencent_calls_total", "Calls of the Tencent-compatible API, by error code; none: done.", "code",
            values.tencentCalls.sorted { $0.key < $1.key }.map { ($0.key.isEmpty ? "none" : $0.key, $0.value) })
    }
}
