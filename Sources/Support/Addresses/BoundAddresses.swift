/// The addresses of a started server, with the real ports.
package struct BoundAddresses: Sendable, Equatable {
    package var rtmp: HostPort
    package var rtmps: HostPort?
    package var http: HostPort
    package var https: HostPort?
    /// UDP.
    package var webrtc: HostPort?

    package init(rtmp: HostPort, rtmps: HostPort?, http: HostPort, https: HostPort? = nil, webrtc: HostPort? = nil) {
        self.rtmp = rtmp
        self.rtmps = rtmps
        self.http = http
        self.https = https
        self.webrtc = webrtc
    }
}
