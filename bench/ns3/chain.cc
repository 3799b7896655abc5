// The radio chain of `make bench` on ns-3: what it costs there to simulate the same network.
//
//   node 0 ))) node 1 ))) ... ))) node n
//
// One bulk TCP flow with NewReno crosses a chain of nodes that share a channel of 802.11 DSSS: data
// frames at 2 Mbit/s behind RTS and CTS, control frames and broadcasts at 1 Mbit/s, routes by AODV
// without HELLO messages, no ARP. Powers are those of ns-2's WaveLAN: frames can be read up to 250 m
// and are sensed up to 550 m. What differs from Weir's radio, which has ns-2's rules, is what becomes
// of frames that overlap: ns-3 sums their powers and asks an error model. No trace is connected
// except the one that counts data packets as they reach the receiver. Prints one JSON object with
// what it did and what that took.

#include "ns3/aodv-module.h"
#include "ns3/applications-module.h"
#include "ns3/core-module.h"
#include "ns3/internet-module.h"
#include "ns3/mobility-module.h"
#include "ns3/network-module.h"
#include "ns3/propagation-module.h"
#include "ns3/traffic-control-module.h"
#include "ns3/wifi-module.h"

#include <cstdint>
#include <fstream>
#include <iostream>
#include <string>
#include <sys/resource.h>

namespace
{

using namespace ns3;

constexpr uint32_t LARGEST_BARE_ACK = 60; // a TCP header with all options: anything longer is data
constexpr uint16_t PORT = 5001;
constexpr double CARRIER_HZ = 914e6;
constexpr double ANTENNA_M = 1.5;
constexpr double POWER_DBM = 24.5;     // 281.8 mW
constexpr double READABLE_DBM = -64.4; // what arrives from 250 m
constexpr double SENSED_DBM = -78.1;   // what arrives from 550 m

struct Case
{
    uint32_t hops = 8;
    double spacing = 200; // m
    uint32_t window = 8;  // segments
    uint32_t segment = 1460;
    uint32_t run = 1;
    Time duration = Seconds(51);
};

uint64_t g_data_packets = 0;

void
CountData(const Ipv4Header& header, Ptr<const Packet> packet, uint32_t)
{
    const bool tcp = header.GetProtocol() == TcpL4Protocol::PROT_NUMBER;
    g_data_packets += tcp && packet->GetSize() > LARGEST_BARE_ACK;
}

Case
ReadCase(int argc, char** argv)
{
    Case c;
    CommandLine command(__FILE__);
    command.AddValue("hops", "number of hops", c.hops);
    command.AddValue("spacing", "distance of neighbours, m", c.spacing);
    command.AddValue("window", "receiver's window, segments", c.window);
    command.AddValue("segment", "payload of a segment, bytes", c.segment);
    command.AddValue("run", "number of the random streams", c.run);
    command.AddValue("duration", "simulated time", c.duration);
    command.Parse(argc, argv);
    return c;
}

void
ConfigureTcp(const Case& c)
{
    Config::SetDefault("ns3::TcpL4Protocol::SocketType", TypeIdValue(TcpNewReno::GetTypeId()));
    Config::SetDefault("ns3::TcpSocket::SegmentSize", UintegerValue(c.segment));
    Config::SetDefault("ns3::TcpSocket::SndBufSize", UintegerValue(16 * c.window * c.segment));
    Config::SetDefault("ns3::TcpSocket::RcvBufSize", UintegerValue(c.window * c.segment));
    Config::SetDefault("ns3::TcpSocket::InitialCwnd", UintegerValue(2));
    Config::SetDefault("ns3::TcpSocket::DelAckCount", UintegerValue(1));
    Config::SetDefault("ns3::TcpSocketBase::Sack", BooleanValue(false));
    Config::SetDefault("ns3::TcpSocketBase::Timestamp", BooleanValue(false));
    Config::SetDefault("ns3::TcpSocketBase::WindowScaling", BooleanValue(false));
    Config::SetDefault("ns3::TcpSocketBase::MinRto", TimeValue(Seconds(1)));
}

// Where retry limits are kept depends on the version: what this one does not have is passed over.
void
ConfigureMac()
{
    const std::string manager = "ns3::WifiRemoteStationManager::";
    Config::SetDefault(manager + "RtsCtsThreshold", UintegerValue(0));
    Config::SetDefaultFailSafe(manager + "MaxSsrc", UintegerValue(7));
    Config::SetDefaultFailSafe(manager + "MaxSlrc", UintegerValue(4));
    const QueueSize fifty(QueueSizeUnit::PACKETS, 50);
    Config::SetDefault("ns3::WifiMacQueue::MaxSize", QueueSizeValue(fifty));
    Config::SetDefault("ns3::WifiMacQueue::MaxDelay", TimeValue(Seconds(30)));
}

void
PlaceInChain(const Case& c, const NodeContainer& nodes)
{
    auto places = CreateObject<ListPositionAllocator>();
    for (uint32_t i = 0; i < nodes.GetN(); ++i)
    {
        places->Add(Vector(i * c.spacing, 0, 0));
    }
    MobilityHelper mobility;
    mobility.SetPositionAllocator(places);
    mobility.SetMobilityModel("ns3::ConstantPositionMobilityModel");
    mobility.Install(nodes);
}

NetDeviceContainer
InstallRadios(const NodeContainer& nodes)
{
    YansWifiChannelHelper channel;
    channel.SetPropagationDelay("ns3::ConstantSpeedPropagationDelayModel");
    channel.AddPropagationLoss("ns3::TwoRayGroundPropagationLossModel",
                               "Frequency",
                               DoubleValue(CARRIER_HZ),
                               "HeightAboveZ",
                               DoubleValue(ANTENNA_M));
    YansWifiPhyHelper phy;
    phy.SetChannel(channel.Create());
    phy.Set("TxPowerStart", DoubleValue(POWER_DBM));
    phy.Set("TxPowerEnd", DoubleValue(POWER_DBM));
    phy.Set("RxSensitivity", DoubleValue(SENSED_DBM - 1)); // its scale is that of a 20 MHz channel
    phy.Set("CcaEdThreshold", DoubleValue(SENSED_DBM));
    phy.SetPreambleDetectionModel("ns3::ThresholdPreambleDetectionModel",
                                  "MinimumRssi",
                                  DoubleValue(READABLE_DBM));
    WifiMacHelper mac;
    mac.SetType("ns3::AdhocWifiMac");
    WifiHelper wifi;
    wifi.SetStandard(WIFI_STANDARD_80211b);
    wifi.SetRemoteStationManager("ns3::ConstantRateWifiManager",
                                 "DataMode",
                                 StringValue("DsssRate2Mbps"),
                                 "ControlMode",
                                 StringValue("DsssRate1Mbps"),
                                 "NonUnicastMode",
                                 StringValue("DsssRate1Mbps"));
    return wifi.Install(phy, mac, nodes);
}

// Without traffic control the MAC's queue is the only one.
Ipv4InterfaceContainer
InstallInternet(const NodeContainer& nodes, const NetDeviceContainer& devices)
{
    AodvHelper aodv;
    aodv.Set("EnableHello", BooleanValue(false));
    InternetStackHelper stack;
    stack.SetRoutingHelper(aodv);
    stack.SetIpv6StackInstall(false);
    stack.Install(nodes);
    Ipv4AddressHelper addresses("10.0.0.0", "255.255.0.0");
    auto interfaces = addresses.Assign(devices);
    TrafficControlHelper().Uninstall(devices);
    NeighborCacheHelper().PopulateNeighborCache(interfaces);
    return interfaces;
}

Ptr<PacketSink>
StartFlow(const Case& c, const NodeContainer& nodes, const Ipv4InterfaceContainer& interfaces)
{
    const auto last = nodes.GetN() - 1;
    PacketSinkHelper sink("ns3::TcpSocketFactory", InetSocketAddress(Ipv4Address::GetAny(), PORT));
    auto sinks = sink.Install(nodes.Get(last));
    sinks.Start(Seconds(0));
    BulkSendHelper bulk("ns3::TcpSocketFactory",
                        InetSocketAddress(interfaces.GetAddress(last), PORT));
    bulk.SetAttribute("SendSize", UintegerValue(c.segment));
    bulk.Install(nodes.Get(0)).Start(Seconds(0));
    nodes.Get(last)->GetObject<Ipv4L3Protocol>()->TraceConnectWithoutContext(
        "LocalDeliver",
        MakeCallback(&CountData));
    return DynamicCast<PacketSink>(sinks.Get(0));
}

// The most memory that this process has held. On Linux, getrusage also counts what the process was
// before it became this program.
double
PeakMib()
{
    std::ifstream status("/proc/self/status");
    for (std::string word; status >> word;)
    {
        double kib = 0;
        if (word == "VmHWM:" && status >> kib)
        {
            return kib / 1024;
        }
    }
    return 0;
}

void
Report(const Case& c, Ptr<PacketSink> sink)
{
    rusage used{};
    getrusage(RUSAGE_SELF, &used);
    const auto seconds = [](timeval t) { return t.tv_sec + 1e-6 * t.tv_usec; };
    std::cout << "{\"sim_s\": " << c.duration.GetSeconds()
              << ", \"events\": " << Simulator::GetEventCount()
              << ", \"data_packets\": " << g_data_packets
              << ", \"goodput_mbps\": " << sink->GetTotalRx() * 8e-6 / c.duration.GetSeconds()
              << ", \"cpu_s\": " << seconds(used.ru_utime) + seconds(used.ru_stime)
              << ", \"peak_mib\": " << PeakMib() << "}\n";
}

} // namespace

int
main(int argc, char** argv)
{
    const Case c = ReadCase(argc, argv);
    RngSeedManager::SetRun(c.run);
    ConfigureTcp(c);
    ConfigureMac();
    NodeContainer nodes;
    nodes.Create(c.hops + 1);
    PlaceInChain(c, nodes);
    const auto devices = InstallRadios(nodes);
    const auto interfaces = InstallInternet(nodes, devices);
    const auto sink = StartFlow(c, nodes, interfaces);
    Simulator::Stop(c.duration);
    Simulator::Run();
    Report(c, sink);
    Simulator::Destroy();
    return 0;
}
