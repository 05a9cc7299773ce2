/// How many of all places one address may have, and how many are kept for pushes.
extension ServerConfig.Limits {
    /// What a NAT with hundreds of clients needs, of however many there are.
    private static let mostOfAddress = 5_000
    /// Few open files leave few places; half of them would be too few for a household.
    private static let leastOfAddress = 64
    private static let mostForPushes = 256

    /// The share of one address unless a setting says otherwise: half of all places at most.
    static func share(of total: Int) -> Int { min(Self.mostOfAddress, max(Self.leastOfAddress, total / 2)) }

    /// RTMP connections and players over HTTP of one address.
    package var connectionsOfAddress: Int { self.connectionsPerAddress ?? Self.share(of: self.connections) }

    /// HLS players of one address.
    package var hlsPlayersOfAddress: Int { self.connectionsPerAddress ?? Self.share(of: self.hlsPlayers) }

    /// Places of ``connections`` that plays cannot take: an eighth.
    package var connectionsForPushes: Int { min(Self.mostForPushes, max(self.connections > 1 ? 1 : 0, self.connections / 8)) }
}
