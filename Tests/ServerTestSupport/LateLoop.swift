package import Support

extension LoopLoad {
    /// The load of a loop that has been this late for a while.
    package static func late(byMs lagMs: Int64) -> LoopLoad {
        var load = LoopLoad(overloadMs: 500)
        for _ in 0..<80 { load.sample(lagMs: lagMs, elapsedMs: 100) }
        return load
    }
}

extension LoopPressure {
    package static func late(byMs lagMs: Int64) -> LoopPressure {
        let pressure = LoopPressure()
        pressure.publish(.late(byMs: lagMs))
        return pressure
    }
}
