import Testing

@testable import ServerConfiguration
@testable import Support

/// Division of a limit of open files.
@Suite struct DescriptorPlanTests {
    private static func limits(_ connections: Int, _ httpConnections: Int) -> ServerConfig.Limits {
        var limits = ServerConfig.Limits()
        limits.connections = connections
        limits.httpConnections = httpConnections
        return limits
    }

    @Test(arguments: [
        // limit, asked, kept
        (256, (20_000, 20_000), (96, 96)),
        (1_024, (20_000, 20_000), (448, 448)),
        (1_024, (20_000, 100), (796, 100)),
        (1_024, (100, 20_000), (100, 796)),
        (1_024, (100, 100), (100, 100)),
        (65_536, (20_000, 20_000), (20_000, 20_000)),
        (1_048_576, (1_000_000, 1_000_000), (458_752, 458_752)),
        (129, (20_000, 20_000), (32, 33)),
    ]) func sharesWhatThereIs(_ limit: Int, _ asked: (Int, Int), _ kept: (Int, Int)) throws {
        let limits = Self.limits(asked.0, asked.1)
        let plan = try DescriptorPlan(limit: limit, limits: limits, loops: 2)
        #expect(plan.connections == kept.0 && plan.httpConnections == kept.1)
        #expect(plan.connections + plan.httpConnections <= limit - plan.reserve)
        #expect(plan.reserve >= max(64, limit / 8))
        let reduced = plan.reductions(of: limits).map(\.setting)
        #expect(reduced.contains("limits.connections") == (kept.0 < asked.0))
        #expect(reduced.contains("limits.httpConnections") == (kept.1 < asked.1))
        var applied = limits
        plan.apply(to: &applied)
        #expect(applied == Self.limits(kept.0, kept.1))
        #expect(try DescriptorPlan(limit: limit, limits: applied, loops: 2).reductions(of: applied).isEmpty)
    }

    /// One address has half of the fitted places at most. A setting as large as all places says that addresses have no limit.
    private static let shares: [(limit: Int, total: Int, asked: Int?, kept: Int)] = [
        // asked and kept: of an address
        (1_024, 20_000, nil, 224),
        (1_024, 20_000, 5_000, 224),
        (1_024, 20_000, 100, 100),
        (1_024, 20_000, 20_000, 448),
        (256, 20_000, nil, 64),
        (65_536, 20_000, nil, 5_000),
        (65_536, 20_000, 15_000, 15_000),
        (65_536, 300, nil, 150),
    ]

    @Test(arguments: shares) func anAddressHasItsShare(_ limit: Int, _ total: Int, _ asked: Int?, _ kept: Int) throws {
        var limits = Self.limits(total, 20_000)
        limits.connectionsPerAddress = asked
        let plan = try DescriptorPlan(limit: limit, limits: limits, loops: 2)
        let isLowered = plan.reductions(of: limits).contains { $0.setting == "limits.connectionsPerAddress" }
        plan.apply(to: &limits)
        #expect(min(limits.connectionsOfAddress, limits.connections) == kept)
        #expect(isLowered == (limits.connectionsPerAddress != asked))
    }

    /// Plays leave places to pushes, but for a server of one connection.
    @Test(arguments: [(1, 0), (2, 1), (96, 12), (448, 56), (20_000, 256)]) func pushesHaveAReserve(_ total: Int, _ reserve: Int) {
        #expect(Self.limits(total, 100).connectionsForPushes == reserve)
    }

    @Test func tooFewAreAnError() throws {
        #expect(throws: DescriptorShortage(limit: 127, least: 128)) { try DescriptorPlan(limit: 127, limits: Self.limits(1, 1), loops: 2) }
        // Each event loop needs some of its own.
        #expect(throws: DescriptorShortage(limit: 256, least: 304)) { try DescriptorPlan(limit: 256, limits: Self.limits(1, 1), loops: 64) }
        #expect("\(DescriptorShortage(limit: 100, least: 128))".contains("LimitNOFILE="))
    }

    /// Recordings and links do not get descriptors promised to connections.
    @Test func othersGetWhatIsLeft() {
        #expect(!OpenDescriptors.areScarce(open: 33, promised: 208, limit: 256))
        #expect(OpenDescriptors.areScarce(open: 41, promised: 208, limit: 256))
        #expect(OpenDescriptors.areScarce(open: 240, promised: 9, limit: 256))
        // A hundred of the promised descriptors are in use.
        #expect(!OpenDescriptors.areScarce(open: 133, promised: 108, limit: 256))
        // Promises that were not fitted to the limit.
        #expect(!OpenDescriptors.areScarce(open: 33, promised: 40_000, limit: 1_024))
        #expect(OpenDescriptors.areScarce(open: 1_020, promised: 40_000, limit: 1_024))
        #expect(OpenDescriptors.count(upTo: 1_024) ?? 3 >= 3)
    }
}
