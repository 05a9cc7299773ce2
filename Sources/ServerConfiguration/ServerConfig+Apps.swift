package import Support

extension ServerConfig {
    /// Settings of apps, besides those of streams: mesh rooms, channels, classes, machines, the cloud's API.
    package struct Apps: Sendable, Equatable {
        /// Addresses that may meet in mesh rooms without a channel token.
        package var meshFrom = CIDR.loopback
        /// Whether `/mesh/` shows the demo page.
        package var meshPage = true
        /// People in one mesh room: each sends its media to all others.
        package var meshMembers = 8
        /// Addresses that may call the cloud's API. They need a key too.
        package var tencentFrom = CIDR.loopback
        /// The names that DomainName may have; empty: any.
        package var tencentDomains: [String] = []
        /// Addresses that may call the machines' API as guests, who play and watch.
        package var machineFrom = CIDR.loopback
        /// Addresses that may create and manage machines through that API.
        package var machineHostFrom = CIDR.loopback
        /// How long a player may wait to accept, to play, and for the result.
        package var machineOfferedMs: Int64 = 10_000
        package var machinePlayingMs: Int64 = 30_000
        package var machineSettlingMs: Int64 = 20_000
        /// Addresses that may call the classes' API.
        package var classroomFrom = CIDR.loopback
        /// How long a request of a class is open.
        package var classroomTicketMs: Int64 = 30_000
        package var classroomLifetimeMs: Int64 = 7_200_000
        package var classroomOfflineMs: Int64 = 300_000
        /// The server that keeps the classes' whiteboards; nil: this one.
        package var classroomWhiteboard: String?
        /// The cloud that delivers the messages of the classes' native apps.
        package var rongcloud = RongCloud()
        /// Whether `/demo/` shows pages for trying classes and machines.
        package var demo = false
        /// Bytes of a message.
        package var messageBytes = 64 << 10
        /// Messages a second of one connection; the burst is four times that.
        package var messageRate = 50
        /// Bytes that may wait for a slow reader; beyond it the connection is closed.
        package var backlogBytes = 256 << 10
        package var members = 1_000
        package var gatherings = 10_000
        /// How long a member may be away.
        package var offlineMs: Int64 = 300_000
    }

    /// RongCloud's server API; off without a host.
    package struct RongCloud: Sendable, Equatable {
        /// The base of its URLs: `https://api.rong-api.com`.
        package var host: String?
        package var appKey: String?
        /// Signs the calls, and RongCloud's webhooks.
        package var secret: String?
        /// How long a call that changes a class waits for RongCloud. Not a setting.
        package var callWaitMs: Int64 = 5_000
    }
}
