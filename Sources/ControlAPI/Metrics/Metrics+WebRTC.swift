import HTTPAPI
import Support

/// Viewers by WebRTC: how many connect, and why others do not.
extension Metrics {
    mutating func addWebRTC() {
        let figures = self.services.figures.webrtc
        // Those that alerts ask for are there from the start.
        let watched = [CloseReason.handshakeTimeout, .protocolError].map { ($0.rawValue, UInt64(0)) }
        let failed = figures.failed.merging(watched) { counted, _ in counted }
        self.page.counter("earshot_webrtc_offers_total", "Offers of WHEP and WHIP that were admitted.", figures.offers)
        self.page.counter("earshot_webrtc_connected_total", "Clients by WebRTC whose connection came up.", figures.connected)
        self.page.counters(
            "earshot_webrtc_failed_total", "Clients by WebRTC whose connection never came up, by reason.", "reason",
            failed.sorted { $0.key < $1.key }.map { ($0.key, $0.value) })
        self.page.counter(
            "earshot_webrtc_repeated_packets_total", "Packets sent again because a viewer lacked them.", figures.repeatedPackets)
        self.page.counter(
            "earshot_webrtc_keyframe_requests_total", "Times that a viewer could not go on without a keyframe.", figures.keyframeRequests)
        self.page.counter(
            "earshot_webrtc_strange_datagrams_total", "Datagrams at the UDP port that belong to no client; dropped without an answer.",
            figures.strangeDatagrams)
        self.page.counter(
            "earshot_webrtc_lost_datagrams_total", "Datagrams to viewers that the system did not take.", figures.lostDatagrams)
        self.page.gauge("earshot_webrtc_encoders", "Streams whose pictures are encoded anew for WebRTC.", Double(figures.encoders))
    }
}
